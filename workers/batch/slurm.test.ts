import { expect, test } from 'vitest';
import { newId } from '../../shared/ids.ts';
import { Statuses } from './engine.ts';
import { slurm } from './slurm.ts';

const TOKEN = 'windlass-job-1';

test('submits with what was asked for, and its own options come last', () => {
  const text = slurm.submit(TOKEN, {
    name: "it's",
    nodes: 2,
    tasks: 8,
    cpus: 4,
    memory: 1_500_000_001,
    time: 3_725,
    queue: 'main',
    account: 'physics',
    options: ['--gres=gpu:1', '--comment=other'],
  });
  const words = text.split(' ');
  for (const word of [
    "'--nodes=2'",
    "'--ntasks=8'",
    "'--cpus-per-task=4'",
    "'--mem=1464844K'",
    "'--time=62:5'",
    "'--partition=main'",
    "'--account=physics'",
    "'--gres=gpu:1'",
    "'--no-requeue'",
    `'--job-name=${TOKEN}'`,
  ])
    expect(words).toContain(word);
  expect(text).toContain(`'--comment=it'\\''s'`);
  expect(text.indexOf('--comment=other')).toBeLessThan(text.indexOf('--comment=it'));
  expect(text).toMatch(/"\$windlass_dir\/job" "\$windlass_dir"$/);
});

test.each([
  ['123\n', '123'],
  ['123;cluster\n', '123'],
  ['a module says hello\n42\n', '42'],
  ['Core hours left:\n4711\n42;cluster\n', '42'],
  ['42\nuse it well\n', '42'],
  ['42\nCore hours used:\n0\n', '42'],
  ['42\n007\n4294967294\n20261130010203\n', '42'],
  ['4294967293\n', '4294967293'],
  ['', undefined],
  ['Submitted\n', undefined],
])('the id in %j is %j', (output, id) => {
  expect(slurm.parseId(output)).toBe(id);
});

test('reads states, reasons and nodes; squeue comes before the accounts', () => {
  const { command, parse } = slurm.status(['7', '8', '9', '10', '11'], []);
  expect(command).toContain('--jobs=7,8,9,10,11');
  const statuses = parse(
    [
      '7|PENDING|Resources||windlass-a|(null)',
      '8|RUNNING|None|n[1-2]|windlass-b|(null)',
      '9|SHINY_NEW_STATE|(x|y)|n1|windlass-c|(null)',
      'answered',
      'accounted 8|COMPLETED|None|n1|windlass-b|',
      'accounted 10|CANCELLED by 1000|None|None assigned|windlass-d|',
      'accounted 11|RUNNING|None|n1|windlass-e|',
      'accounted 12|COMPLETED|None|n1|heat-study|',
      '',
    ].join('\n'),
  );
  expect(statuses).toEqual([
    {
      id: '7',
      token: 'windlass-a',
      state: 'PENDING',
      reason: 'Resources',
      nodes: null,
      phase: 'pending',
    },
    {
      id: '8',
      token: 'windlass-b',
      state: 'RUNNING',
      reason: null,
      nodes: 'n[1-2]',
      phase: 'running',
    },
    {
      id: '9',
      token: 'windlass-c',
      state: 'SHINY_NEW_STATE',
      reason: '(x|y)',
      nodes: 'n1',
      phase: undefined,
    },
    {
      id: '10',
      token: 'windlass-d',
      state: 'CANCELLED',
      reason: null,
      nodes: null,
      phase: 'stopped',
    },
  ]);
});

test.each([
  ['its name', `${TOKEN}|(null)`, TOKEN],
  [
    'its command',
    'heat-study|/home/a b/.windlass/batch/job-1/job /home/a b/.windlass/batch/job-1',
    TOKEN,
  ],
  [
    'a name with bars',
    'a|b|/home/u/.windlass/batch/job-1/job /home/u/.windlass/batch/job-1',
    TOKEN,
  ],
  ['a copy of its script', 'heat-study|/tmp/copy /home/u/.windlass/batch/job-1', TOKEN],
  ['the command of another', `${TOKEN}|/home/u/.windlass/batch/job-2/job`, 'windlass-job-2'],
  ['neither', 'heat-study|/home/u/run.sh', null],
])('a job is known by %s', (_, text, token) => {
  const { command, parse } = slurm.status(['7'], []);
  expect(command).toContain(`|%j|%o'`);
  expect(parse(`7|RUNNING|None|n1|${text}\nanswered\n`)).toMatchObject([{ id: '7', token }]);
});

test('an error is no answer, and ids that are not known are one', () => {
  const { parse } = slurm.status(['7'], []);
  expect(
    parse('slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n'),
  ).toBeUndefined();
  expect(parse('')).toBeUndefined();
  expect(parse('slurm_load_jobs error: Invalid job id specified\nanswered\n')).toEqual([]);
  expect(parse('answered\n')).toEqual([]);
});

test.each([
  ['a state', `1|${'A'.repeat(1e5)}`],
  ['an id', '1'.repeat(1e5)],
  ['fields', `1|A|${'|a'.repeat(1e5)}`],
  ['a reason', `1|A|${'a'.repeat(1e5)}|`],
  ['a command', `1|A||||${'/.windlass/batch/'.repeat(1e4)}`],
])('%s without an end is read in no time, and the answer after it', (_, line) => {
  const { parse } = slurm.status(['7'], []);
  const from = performance.now();
  const statuses = parse(`${line}\n7|PENDING|None||${TOKEN}|\nanswered\n`);
  expect(statuses?.at(-1)).toMatchObject({ id: '7', phase: 'pending' });
  slurm.parseId(line);
  // Where each character was read once for each other one it took seconds.
  expect(performance.now() - from).toBeLessThan(1_000);
});

test('no word of a host is long, or holds what no database takes', () => {
  const { parse } = slurm.status(['7'], []);
  const long = 'x'.repeat(10_000);
  expect(parse(`7|${'A'.repeat(65)}|None||${TOKEN}|\nanswered\n`)).toEqual([]);
  expect(parse(`${'1'.repeat(21)}|PENDING|None||${TOKEN}|\nanswered\n`)).toEqual([]);
  const [status] = parse(`7|PENDING|a\0${long}|${long}|${TOKEN}|\nanswered\n`) ?? [];
  expect(status).toMatchObject({ reason: `a${'x'.repeat(498)}`, nodes: 'x'.repeat(500) });
  expect(slurm.parseId('1'.repeat(21))).toBeUndefined();
});

test('ends all in one call, and no other user’s', () => {
  const text = slurm.cancel(['7', '0', '8']);
  expect(text).toMatch(/^\(unset [A-Z_ ]*; scancel --user="\$\(id -un\)" 7 8 >/);
});

test('those without an id are found by their names, in the same query as the others', () => {
  const { command, parse } = slurm.status(['7'], [TOKEN, 'windlass-job-2']);
  expect(command.match(/squeue/g)).toHaveLength(1);
  expect(command).not.toContain('squeue --noheader --states=all --user="$(id -un)" --jobs');
  expect(command).toContain(`--name='${TOKEN},windlass-job-2'`);
  const lines = [`12|PENDING|Priority||${TOKEN}|`, '7|RUNNING|None|n1|windlass-job-3|'];
  expect(parse([...lines, 'answered', ''].join('\n'))).toMatchObject([
    { id: '12', token: TOKEN },
    { id: '7', token: 'windlass-job-3' },
  ]);
});

test('no argument is longer than a kernel takes, however many are looked for', () => {
  const tokens = Array.from({ length: 5_000 }, () => `windlass-${newId()}-${newId().slice(-8)}`);
  const { command } = slurm.status([], tokens);
  expect(Math.max(...command.split(/\s/).map(word => word.length))).toBeLessThan(131_072);
});

test('the first part of a heterogeneous job runs the script; a part that runs comes before it', () => {
  const lines = ['11', '9', '10'].map(id => `${id}|PENDING|JobHeldUser||${TOKEN}|`);
  const read = (all: string[]) =>
    new Statuses(slurm.status([], [TOKEN]).parse([...all, 'answered', ''].join('\n')) ?? []);
  expect(read(lines).leader(TOKEN)?.id).toBe('9');
  expect(read([...lines, `12|RUNNING|None|n1|${TOKEN}|`]).leader(TOKEN)?.id).toBe('12');
});

test.each([
  [
    'sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)',
    true,
  ],
  ['sbatch: error: Batch job submission failed: Socket timed out on send/recv operation', true],
  ['sbatch: error: Batch job submission failed: Zero Bytes were transmitted or received', true],
  ['sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying', true],
  ['sbatch: error: Batch job submission failed: Resource temporarily unavailable', true],
  ['sbatch: error: invalid partition specified: nope', false],
  [
    'sbatch: error: You must always specify a type when requesting gpu GRES\nsbatch: error: Batch job submission failed: Unspecified error',
    false,
  ],
  ['sbatch: error: --sockets-per-node is not allowed in this partition', false],
  ['sbatch: error: The partition gpu is temporarily closed: use gpu2', false],
  [
    'sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified',
    false,
  ],
])('%s: passing is %s', (errors, isTransient) => {
  expect(slurm.isTransient(errors)).toBe(isTransient);
});
