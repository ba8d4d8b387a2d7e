import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { findDecoderUser } from '../../shared/process/system-users.ts';
import { spawnInNamespace, type UserNamespace } from '../supervisor/user-namespace.ts';

/** What a worker does there: a folder of the decoders' user, and a process of it. */
const CHECK = [
  'folder=$(mktemp -d) || exit',
  'chown "$1:$2" "$folder" && setpriv --reuid="$1" --regid="$2" --clear-groups true',
  'status=$?',
  'rmdir "$folder" && exit $status',
].join('\n');

/**
 * Why no worker can run in such a namespace here; undefined where one can. Only an attempt tells what a system permits.
 */
export async function tryNamespace(namespace: UserNamespace): Promise<string | undefined> {
  const decoder = findDecoderUser();
  if (!decoder) return 'there is no account for decoders, such as windlass-decoder.';
  const { uid, gid } = decoder;
  const child = spawnInNamespace(['/bin/sh', '-c', CHECK, 'sh', `${uid}`, `${gid}`], namespace, {
    stdio: ['ignore', 'ignore', 'pipe', 'ignore'],
    cwd: '/',
  });
  try {
    const [said, [status]] = await Promise.all([
      child.stderr ? text(child.stderr) : '',
      once(child, 'close'),
    ]);
    if (status === 0) return undefined;
    return said.trim().split('\n')[0] || 'a user namespace with its numbers cannot be made.';
  } catch (error) {
    return (error as Error).message;
  }
}
