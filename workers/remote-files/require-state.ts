import { WindlassError } from '../../shared/errors/errors.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';
import { openRemoteFile } from './read-file.ts';

/**
 * Throws `precondition_failed` if the file has none of these entity tags (openRemoteFile()'s, quoted); `*` matches any
 * file. `mayBeGone`: an earlier try may have removed it. Otherwise throws openRemoteFile()'s errors.
 */
export async function requireState(
  session: RemoteSession,
  {
    path,
    ifMatch,
    mayBeGone = false,
    signal,
  }: { path: string; ifMatch: string[]; mayBeGone?: boolean; signal: AbortSignal },
): Promise<void> {
  const tag = await readTag(session, path, signal);
  if (tag === undefined && mayBeGone) return;
  if (tag !== undefined && (ifMatch.includes('*') || ifMatch.includes(`"${tag}"`))) return;
  throw isOther(path);
}

export const isOther = (path: string) =>
  new WindlassError('precondition_failed', {
    detail: `${path} has another state, or is not there.`,
    hint: 'Read it again and repeat the change, or leave out If-Match.',
  });

/** Undefined where there is no such file; empty where its host tells no state. */
async function readTag(session: RemoteSession, path: string, signal: AbortSignal) {
  try {
    const { tag = '', bytes } = await openRemoteFile(session, { path, length: 0, signal });
    bytes.destroy();
    return tag;
  } catch (error) {
    if (error instanceof WindlassError && error.code === 'not_found') return undefined;
    throw error;
  }
}
