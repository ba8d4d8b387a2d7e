import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { makeTempDir } from '../test/harness/files/temp-dir.ts';
import { canInstall } from './install-programs.ts';

const SUITE = `
test('passes', () => {});
test.skip('has no reason', () => {});
describe('a suite', () => {
  test('needs what is not here', context => {
    context.task.meta.obtainable = true;
    context.skip('needs something');
  });
});
`;

/** Runs `npm test` on a suite of its own, and gives what it printed last and its exit code. */
function runSuite(suite: string, env: Record<string, string>) {
  const directory = makeTempDir('suite');
  onTestFinished(() => directory.remove());
  writeFileSync(join(directory.path, 'a.test.mjs'), suite);
  const program = fileURLToPath(new URL('../dist/scripts/test.js', import.meta.url));
  const args = [program, '--root', directory.path, '--globals', '--reporter', 'dot'];
  const { VITEST, NODE_ENV, CI, ...environment } = process.env;
  const run = spawnSync(process.execPath, args, {
    env: { ...environment, ...env },
    encoding: 'utf8',
  });
  return { lines: run.stdout.trimEnd().split('\n'), code: run.status };
}

test('npm test ends with what was skipped and why, and the counts on a line of their own', () => {
  const { lines, code } = runSuite(SUITE, {});
  expect(lines.slice(-3)).toEqual([
    'skipped: a.test.mjs: has no reason (no reason is given)',
    'skipped: a.test.mjs: a suite > needs what is not here (needs something)',
    '1 passed, 0 failed, 2 skipped',
  ]);
  expect(code).toBe(0);
});

test('with CI=true it fails where what was missing could have been had', () => {
  const { lines, code } = runSuite(SUITE, { CI: 'true' });
  expect(lines.at(-1)).toBe('1 passed, 0 failed, 2 skipped');
  expect(code).toBe(canInstall() ? 1 : 0);
});

test('failed tests, and files that cannot be loaded, make it fail', () => {
  const failed = runSuite(`${SUITE}test('fails', () => { throw new Error('no'); });`, {});
  expect([failed.lines.at(-1), failed.code]).toEqual(['1 passed, 1 failed, 2 skipped', 1]);
  const broken = runSuite('throw new Error("no");', {});
  expect([broken.lines.at(-1), broken.code]).toEqual(['0 passed, 1 failed, 0 skipped', 1]);
});

test('in CI a file that failed is run once more, and its failed tests are named', () => {
  const directory = makeTempDir('marker');
  onTestFinished(() => directory.remove());
  const marker = JSON.stringify(join(directory.path, 'tried'));
  const suite = `
const fs = process.getBuiltinModule('node:fs');
test('fails at first', () => {
  const isFirst = !fs.existsSync(${marker});
  fs.writeFileSync(${marker}, '');
  if (isFirst) throw new Error('no');
});`;
  const { lines, code } = runSuite(suite, { CI: 'true' });
  expect([...lines.slice(-2), code]).toEqual([
    'passed at the second try only: a.test.mjs: fails at first',
    '1 passed, 0 failed, 0 skipped',
    0,
  ]);
  expect(
    runSuite(`test('fails', () => { throw new Error('no'); });`, { CI: 'true' }),
  ).toMatchObject({
    code: 1,
  });
});
