import { spawnSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { expect, test } from 'vitest';

const compiled = new URL('../../dist/shared/', import.meta.url).href;

const PROGRAM = `
const [base, last] = process.argv.slice(1);
const { createLog } = await import(base + 'process/log.js');
const { exitOnUncaughtError } = await import(base + 'service/lifecycle.js');
const log = createLog({ level: 'info', name: 'test' });
exitOnUncaughtError(log);
for (let n = 0; n < 10; n++) log.info('a line');
console.log('alive');
if (last) throw new Error('uncaught');
`;

/** What becomes of a program whose standard error is a file on a full disk. */
function run(...args: string[]) {
  const full = openSync('/dev/full', 'w');
  try {
    const command = ['--input-type=module', '-e', PROGRAM, compiled, ...args];
    const { status, stdout } = spawnSync(process.execPath, command, {
      stdio: ['ignore', 'pipe', full],
      encoding: 'utf8',
    });
    return { status, stdout };
  } finally {
    closeSync(full);
  }
}

test('a log that cannot be written ends no process, and changes the end of none', () => {
  expect(run()).toEqual({ status: 0, stdout: 'alive\n' });
  expect(run('throw')).toEqual({ status: 1, stdout: 'alive\n' });
});
