import { readFileSync } from 'node:fs';

/**
 * The text of a script, for `sh -c`: the user that runs it may not reach the
 * checkout, and one that runs on is not changed by an update. Without its comments, for `ps`.
 */
export function readScript(file: URL): string {
  const text = readFileSync(file, 'utf8');
  return text.replace(/^ *#.*\n/gm, '').trim();
}
