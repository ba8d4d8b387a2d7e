import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const compiled = new URL('../../dist/cli/supervisor/reaper.js', import.meta.url).href;

/** Uses up what descriptors it has, and gives them back when the reaper's start has failed. */
const PROGRAM = `
import { closeSync, openSync, readFileSync } from 'node:fs';
const { startReaper } = await import(process.argv[1]);
const held = [];
const warn = () => {
  for (const file of held.splice(0)) closeSync(file);
  console.log('failed');
};
try { for (;;) held.push(openSync('/dev/null')); } catch {}
// For its script.
closeSync(held.pop());
startReaper({ warn });
for (;;) {
  await new Promise(resolve => setTimeout(resolve, 50));
  const children = held.length === 0 && readFileSync('/proc/self/task/' + process.pid + '/children', 'utf8').trim();
  if (children) break;
}
console.log('started');
process.exit();
`;

test('a reaper whose start has failed is started again', { timeout: 20_000 }, async () => {
  const node = ['exec "$0" --input-type=module -e "$1" "$2"', process.execPath, PROGRAM, compiled];
  const [script = '', ...args] = node;
  const { stdout } = await promisify(execFile)('sh', ['-c', `ulimit -n 100; ${script}`, ...args], {
    timeout: 15_000,
  });
  expect(stdout).toBe('failed\nstarted\n');
});
