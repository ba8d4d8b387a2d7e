import type { Session } from '../../../clients/typescript/src/session.ts';
import { CommandError } from '../../command-error.ts';

/** Runs a script of POSIX sh on a host, which names its target `t` and says why it does not go on by `refuse`. */
export async function runScript(session: Session, script: string): Promise<{ output: string }> {
  const stdin = `LC_ALL=C; export LC_ALL
refuse() { printf '%s cannot be written: %s' "$t" "$1" >&2; exit 9; }
${script}`;
  const ended = await session.run('/bin/sh', { stdin, name: 'windlass cp' }).wait();
  if (ended.returncode === 0) return ended;
  const said = ended.errors.trim() || `the host's shell ended with ${ended.returncode}`;
  throw new CommandError(`${said}.`, { hint: 'Nothing was changed there.' });
}
