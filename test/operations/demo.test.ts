import { readdirSync } from 'node:fs';
import { afterAll, describe, expect, test } from 'vitest';
import { listProcesses, type ProcessEntry, readEnvironment } from '../../servers/processes.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { type ProgramEnd, startProgram } from '../harness/run-program.ts';
import { describeUnless } from '../harness/skip.ts';
import { missingFleet } from '../harness/stacks/fleet-servers.ts';
import { waitFor } from '../harness/wait-for.ts';

const DEMO = 'dist/demo/main.js';
/** Some 70 s on an idle machine of two cores, most of it leases of killed workers that run out. */
const DEMO_MS = 300_000;

const directory = makeTempDir('demo');
afterAll(() => directory.remove());

// The demonstration's folders lie in TMPDIR: a process that works there, or was told of it, was left behind.
const run = (args: string[] = [], environment: Record<string, string> = {}) =>
  startProgram({
    args: [DEMO, ...args],
    cwd: directory.path,
    settings: { TMPDIR: directory.path, ...environment },
  });

function expectAllOfIt({ code, stdout, stderr }: ProgramEnd): void {
  expect([code, stderr], stdout).toEqual([0, '']);
  expect(stdout).toContain('All of it worked');
  expect(stdout.match(/kill -9 \d+/g), 'a command, a video and a parse').toHaveLength(3);
  expect(stdout, 'no escapes where there is no terminal').not.toContain('\u001b');
}

async function expectNothingLeft(): Promise<void> {
  const isLeft = ({ pid, command }: ProcessEntry) =>
    [command, ...Object.values(readEnvironment(pid))].some(text => text.includes(directory.path));
  await waitFor(() => !listProcesses().some(isLeft), {
    what: 'every process of the demonstration to end',
  });
  expect(readdirSync(directory.path)).toEqual([]);
}

describe('npm run demo', () => {
  test(
    'shows all of it on the embedded form and leaves nothing behind',
    async () => {
      expectAllOfIt(await run(['--exit']).ended);
      await expectNothingLeft();
    },
    DEMO_MS,
  );

  test('says in one line what it does not know', async () => {
    const { code, stdout, stderr } = await run(['--flet']).ended;
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(/^There is no --flet\.\n/);
  });

  test('says in one line what a fleet lacks on this machine, and how to install it', async () => {
    const nowhere = { PATH: directory.path, XDG_CACHE_HOME: directory.path };
    const { code, stdout, stderr } = await run(['--fleet'], nowhere).ended;
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/^The fleet needs .*apt-get install redis-server.*go install .*\n$/);
  });

  test('ends and clears up when it is interrupted in the middle', async () => {
    const demo = run();
    await waitFor(() => demo.stdout().includes('line 1 of 5'), {
      what: 'the first command',
      timeoutMs: 60_000,
    });
    demo.child.kill('SIGINT');
    expect((await demo.ended).code).toBe(130);
    await expectNothingLeft();
  });
});

describeUnless(missingFleet(), 'npm run demo -- --fleet', () => {
  test(
    'shows all of it on a fleet and leaves nothing behind',
    async () => {
      expectAllOfIt(await run(['--fleet', '--exit']).ended);
      await expectNothingLeft();
    },
    DEMO_MS,
  );
});
