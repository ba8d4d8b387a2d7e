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
  if (/^~[^/]/.test(path))
    throw new WindlassError({
      code: 'invalid_input',
      detail: `${path} begins with another home than the account's own.`,
      hint: 'Only ~/ is known: give an absolute path, or ./~ for a name that begins so.',
    });
  const home = homes.get(session) ?? (await findHome(session, signal));
  homes.set(session, home);
  const below = path.replace(/^~(\/+|$)/, '');
  return below === '' ? home : `${home.replace(/\/$/, '')}/${below}`;
}

/** The service takes absolute paths alone, and only the host knows the home. */
async function findHome(session: ScriptSession, signal?: AbortSignal): Promise<string> {
  const script = 'cd 2>/dev/null && printf %s "$PWD"\nexit 0\n';
  const { output } = await runScript(session, script, { signal });
  if (output !== '') return output;
  throw new WindlassError({
    code: 'not_found',
    detail: 'The account has no home on its host.',
    hint: 'Give an absolute path.',
  });
}
