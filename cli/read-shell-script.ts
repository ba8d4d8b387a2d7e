import { readFileSync } from 'node:fs';

/**
 * Reads a script for `sh -c`: the user that runs it may be unable to read the checkout, and an update cannot change it
 * while it runs. Removes its comments, because `ps` shows the text.
 */
export function readShellScript(file: URL): string {
  const text = readFileSync(file, 'utf8');
  return text.replace(/^ *#.*\n/gm, '').trim();
}
