import { WindlassError } from '../../shared/errors/errors.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';
import { openRemoteFile } from './read-file.ts';

/**
 * Throws `precondition_failed` if the file has none of these entity tags (openRemoteFile()'s, quoted); `*` matches any
 * file. Returns the state of one that a tag names, empty where the file is gone. `mayBeGone`: an earlier try may have
 * removed it. Otherwise throws openRemoteFile()'s errors.
 */
export async function requireState(
  session: RemoteSession,
  {
    path,
    ifMatch,
    mayBeGone = false,
    signal,
  }: { path: string; ifMatch: string[]; mayBeGone?: boolean; signal: AbortSignal },
): Promise<string | undefined> {
  const found = await readFound(session, path, signal);
  if (!found && mayBeGone) return '';
  if (!found) throw isOther(path);
  if (ifMatch.includes('*')) return undefined;
  if (found.tag !== undefined && ifMatch.includes(`"${found.tag}"`)) return found.state;
  throw isOther(path);
}

export const isOther = (path: string) =>
  new WindlassError('precondition_failed', {
    detail: `${path} has another state, or is not there.`,
    hint: 'Read it again and repeat the change, or leave out If-Match.',
  });

/** Whether this is isOther()'s error, or another one of a condition that does not hold. */
export const meansOther = (error: unknown) =>
  error instanceof WindlassError && error.code === 'precondition_failed';

/** Undefined where there is no such file. */
async function readFound(session: RemoteSession, path: string, signal: AbortSignal) {
  try {
    const found = await openRemoteFile(session, { path, length: 0, signal });
    found.bytes.destroy();
    return found;
  } catch (error) {
    if (error instanceof WindlassError && error.code === 'not_found') return undefined;
    throw error;
  }
}
