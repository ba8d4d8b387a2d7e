import { WindlassError } from './error.ts';
import { runScript, type ScriptSession } from './pieces/script-on-host.ts';

const homes = new WeakMap<ScriptSession, string>();

/** The absolute path on a session's host. As a command reads it there, a relative one, or with `~/`, is in the home. */
export async function resolvePath(
  session: ScriptSession,
  path: string,
  signal?: AbortSignal,
): Promise<string> {
  if (path.startsWith('/')) return path;
  if (path === '')
    throw new WindlassError({
      code: 'invalid_input',
      detail: 'The path is empty.',
      hint: 'The home is `~`.',
    });
  const home = homes.get(session) ?? (await findHome(session, signal));
  homes.set(session, home);
  const below = path.replace(/^~(\/+|$)/, '');
  return below === '' ? home : `${home.replace(/\/$/, '')}/${below}`;
}

/** The service takes absolute paths alone, and only the host knows the home. */
async function findHome(session: ScriptSession, signal?: AbortSignal): Promise<string> {
  const { output } = await runScript(session, `cd || exit 1\nprintf %s "$PWD"\n`, { signal });
  return output;
}
