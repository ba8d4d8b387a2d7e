import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, test } from 'vitest';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import { describeUnless, missingPrograms } from '../../test/harness/skip.ts';

const MODEL = join(import.meta.dirname, 'job.pml');
const SAFETY = ['-DSAFETY', '-DNOCLAIM'];
/** Weak fairness counts the processes; Spin's default is for fewer. */
const LIVENESS = ['-DNFAIR=5'];
/** What more optimizing saves in the searches, the compiler takes. */
const SEARCHED = '-O1';
/** A search that soon finds something is over before an optimizing compiler is. */
const FAST = '-O0';
/** States are kept whole, which takes half the time of -DCOLLAPSE. 2^22 places in the table are enough for the 3 million. */
const STORED = '-w22';
const directory = makeTempDir('model');
afterAll(() => directory.remove());

interface Search {
  /** What job.pml defines by itself, or leaves out, otherwise. */
  defined?: string[];
  compiled: string[];
  options?: string[];
}

let count = 0;

/** What Spin's search of all states prints. It ends with its test, by `signal`. */
async function search(
  { defined = [], compiled, options = [] }: Search,
  signal: AbortSignal,
): Promise<string> {
  const cwd = join(directory.path, String(++count));
  mkdirSync(cwd);
  copyFileSync(MODEL, join(cwd, 'job.pml'));
  const run = async (program: string, args: string[]) => {
    const { stdout } = await promisify(execFile)(program, args, { cwd, signal });
    return stdout;
  };
  await run('spin', [...defined.map(name => `-D${name}`), '-a', 'job.pml']);
  await run('gcc', ['-w', SEARCHED, ...compiled, '-o', 'pan', 'pan.c']);
  const printed = await run('./pan', ['-m100000', STORED, ...options]);
  expect(printed).not.toContain('max search depth too small');
  return printed;
}

const readErrors = (printed: string) => /errors: (\d+)/.exec(printed)?.[1];

describeUnless(missingPrograms('spin', 'gcc'), 'the model of a job', () => {
  /** Both at once take a minute: README.md. */
  const FORMS = [
    ['FAULTS=2', 'PINGS=0'],
    ['FAULTS=1', 'PINGS=2'],
  ];

  test('is safe in every state, and reaches each of its statements', async ({ signal }) => {
    const unreached = FORMS.map(async defined => {
      const printed = await search({ defined, compiled: SAFETY }, signal);
      expect(readErrors(printed), printed).toBe('0');
      const [processes = ''] = printed.split('unreached in claim');
      return processes.split('\n').filter(line => /, state \d+, (?!"-end-")/.test(line));
    });
    const [withFaults = [], withPings = []] = await Promise.all(unreached);
    expect(withFaults.filter(line => withPings.includes(line))).toEqual([]);
  });

  test('ends its job and removes its run', async ({ signal }) => {
    const printed = await search(
      { defined: ['FAULTS=1', 'PINGS=1'], compiled: LIVENESS, options: ['-a', '-f'] },
      signal,
    );
    expect(readErrors(printed), printed).toBe('0');
  });

  test.for([
    ['TOKEN_UNCHECKED', 'holder==w'],
    ['ROW_UNSEEN', 'starts==1'],
    ['SERVE_UNSEEN', '!(finished)||error'],
    ['CLAIM_UNSEEN', '!(finished)||error'],
    ['CONFIRM_UNSEEN', 'starts==1'],
    ['CHILD_UNSETTLED', '!(finished)||error'],
    ['RUN_AT_LATE', '!(finished)||error'],
    ['FORGOTTEN_EARLY', 'starts==1'],
  ] as const)('as %s violates %s', async ([mutant, property], { signal }) => {
    const printed = await search({ defined: [mutant], compiled: [...SAFETY, FAST] }, signal);
    expect(readErrors(printed)).toBe('1');
    expect(/assertion violated \(\s*(.*?)\) \(at depth/.exec(printed)?.[1]).toBe(property);
  });

  test.for(['ENTRY_UNSEEN', 'CLAIM_KEPT'])(
    'as %s may never end its job',
    async (mutant, { signal }) => {
      const printed = await search(
        { defined: [mutant, 'FAULTS=1'], compiled: [...LIVENESS, FAST], options: ['-a', '-f'] },
        signal,
      );
      expect(readErrors(printed)).toBe('1');
      expect(printed).toContain('acceptance cycle');
    },
  );
});
