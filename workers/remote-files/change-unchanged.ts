import type { RemoteExec } from '../host-agent/exec-channel.ts';
import { quoteWord } from '../host-agent/shell-quote.ts';
import { askHost } from '../ssh/ask-host.ts';
import { STATE } from './file-script.ts';
import { orWords, refusalIn } from './host-refusal.ts';
import { isOther } from './require-state.ts';

/** What a file must still be when it is changed. */
export interface Expected {
  /** From requireState(); undefined: any, as long as the file is there; empty: it is gone. */
  state: string | undefined;
  /** Does work while no other job changes the file of this path. */
  alone(path: string, work: () => Promise<string | undefined>): Promise<string | undefined>;
}

interface Change {
  /** What is replaced or removed. */
  path: string;
  /** By what it was asked for, where that is a link which must still lead there. Default: `path`. */
  given?: string;
  state: string | undefined;
  /** The function of sh that prints it. Default: STATE. */
  reader?: string;
  /** One line of sh, which replaces or removes the file "$f". */
  command: string;
  signal: AbortSignal;
}

/**
 * Has the host's shell compare the file's state and change it at once: SFTP tells times in whole seconds, and no inode.
 * Returns the host's words where it refuses the change. Throws `precondition_failed` if the file is another one,
 * `remote_connection_failed`, or the signal's reason.
 */
export async function changeUnchanged(
  host: RemoteExec,
  { path, given = path, state, reader = STATE, command, signal }: Change,
): Promise<string | undefined> {
  const isExpected = state === undefined ? '[ -e "$f" ]' : `[ "$*" = ${quoteWord(state)} ]`;
  // Who removed the link meanwhile has made the change of this state.
  const isSame = given === path ? '' : ` && [ "$f" -ef ${quoteWord(given)} ]`;
  const program = `LC_ALL=C; export LC_ALL
set -f
f=${quoteWord(path)}
${reader}
set -- $(state)
if ${isExpected}${isSame}; then ${orWords(command)}; else echo other; fi`;
  const said = (await askHost(host, program, signal)).toString('latin1');
  if (said === 'other\n') throw isOther(given);
  return refusalIn(said);
}
