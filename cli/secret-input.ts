import { text } from 'node:stream/consumers';
import { CommandError } from './command-error.ts';
import { ask } from './terminal.ts';

let lines: Promise<string[]> | undefined;

/** The next line of standard input. */
export async function readSecretLine(what: string): Promise<string> {
  lines ??= text(process.stdin).then(all => all.split(/\r?\n/));
  const line = (await lines).shift();
  if (line) return line;
  throw new CommandError(`Standard input has no line with ${what}.`);
}

/** The user's own, from standard input or asked for. */
export async function readPassword(user: string, fromStdin = false): Promise<string> {
  if (fromStdin) return readSecretLine('the password');
  return ask(`Password of ${user}: `, { echo: false, instead: 'Give --password-stdin.' });
}

/** One to be given to a user: asked for twice. */
export async function readNewPassword(user: string, fromStdin = false): Promise<string> {
  if (fromStdin) return readSecretLine('the new password');
  const instead = 'Give --password-stdin.';
  const password = await ask(`New password of ${user}: `, { echo: false, instead });
  if (password === (await ask('The same again: ', { echo: false, instead }))) return password;
  throw new CommandError('The two are not the same; nothing was changed.');
}
