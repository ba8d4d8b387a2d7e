import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const compiled = new URL('../../dist/cli/supervisor/reaper.js', import.meta.url).href;

/** What is lacking for the reaper's start, and how it is there again. */
const LACKS = {
  descriptors: `
const held = [];
heal = () => {
  for (const file of held.splice(0)) closeSync(file);
};
try { for (;;) held.push(openSync('/dev/null')); } catch {}
// For its script.
closeSync(held.pop());`,
  // spawn() throws this error at once, as any that it does not know.
  memory: `
const { spawn } = child;
heal = () => {
  child.spawn = spawn;
  syncBuiltinESMExports();
};
child.spawn = () => {
  throw Object.assign(new Error('spawn ENOMEM'), { code: 'ENOMEM' });
};
syncBuiltinESMExports();`,
};

/** It is there again when the start has failed. */
const programOf = (lack: string) => `
import child from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
const { startReaper } = await import(process.argv[1]);
let heal;
${lack}
const warn = () => {
  heal?.();
  heal = undefined;
  console.log('failed');
};
startReaper({ warn });
for (;;) {
  await new Promise(resolve => setTimeout(resolve, 50));
  const children = !heal && readFileSync('/proc/self/task/' + process.pid + '/children', 'utf8').trim();
  if (children) break;
}
console.log('started');
process.exit();
`;

test.each(Object.entries(LACKS))(
  'a reaper whose start has failed for a lack of %s is started again',
  {
    timeout: 20_000,
  },
  async (_, lack) => {
    const run = 'exec "$0" --input-type=module -e "$1" "$2"';
    const node = [run, process.execPath, programOf(lack), compiled];
    const [script = '', ...args] = node;
    const { stdout } = await promisify(execFile)(
      'sh',
      ['-c', `ulimit -n 100; ${script}`, ...args],
      {
        timeout: 15_000,
      },
    );
    expect(stdout).toBe('failed\nstarted\n');
  },
);
