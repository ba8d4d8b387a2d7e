import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import { slurm } from './slurm.ts';

const directory = makeTempDir('slurm-status');
afterAll(() => directory.remove());

const IDS = Array.from({ length: 5_000 }, (_, n) => `${100_000 + n}`);
const ENDED = ['100000', '102500', '104999'];

function makeProgram(name: string, script: string): void {
  writeFileSync(join(directory.path, name), `#!/bin/sh\n${script}`, { mode: 0o755 });
}

/** What the jobs of these ids are, by the answers of the programs that were made. */
function ask(ids: string[]) {
  const { command, parse } = slurm.status(ids, []);
  const env = { PATH: `${directory.path}:/usr/bin:/bin` };
  return parse(spawnSync('/bin/sh', { input: command, env, encoding: 'utf8' }).stdout);
}

test('an id that Slurm refuses does not hide the others', () => {
  // As in version 22: it takes no number of 32 bits.
  makeProgram(
    'squeue',
    `case $* in *--jobs=*2147483648*) echo 'squeue: error: Invalid job id: 2147483648' >&2; exit 1 ;; esac
echo '7|RUNNING|None|n1|windlass-a|'; echo '8|RUNNING|None|n1|windlass-b|'\n`,
  );
  makeProgram('sacct', 'exit 0\n');
  const seven = expect.objectContaining({ id: '7', phase: 'running' });
  expect(ask(['7', '2147483648'])).toContainEqual(seven);
});

test('an id that no job can have is not asked for, and is unknown', () => {
  makeProgram('squeue', `echo "$*" >"\${0%/*}/asked"\n`);
  expect(ask(['7', '0', '007', '99999999999'])).toEqual([]);
  expect(readFileSync(join(directory.path, 'asked'), 'utf8')).toMatch(/ --jobs=7 /);
  expect(ask(['0'])).toEqual([]);
});

test('the accounts are asked for those of 5,000 jobs that the queue does not know, found in one pass', () => {
  const queued = IDS.filter(id => !ENDED.includes(id)).map(
    id => `${id}|RUNNING|None|n1|windlass-${id}|`,
  );
  // What only looks like an answer for one of them, in the middle of a line and at its beginning.
  const lines = [...queued, '9100000|RUNNING|None|100000|w|', '102500 is unknown', ''].join('\n');
  writeFileSync(join(directory.path, 'queue'), lines);
  // biome-ignore lint/suspicious/noTemplateCurlyInString: of the shell
  makeProgram('squeue', 'cat "${0%/*}/queue"\n');
  makeProgram(
    'sacct',
    `printf '%s\\n' "$@" >"\${0%/*}/asked"\nfor id in ${ENDED.join(' ')}; do echo "$id|COMPLETED|None|n1|windlass-$id"; done\n`,
  );
  const { command, parse } = slurm.status(IDS, []);
  const env = { PATH: `${directory.path}:/usr/bin:/bin`, LC_ALL: 'C.UTF-8' };
  const { stdout, stderr } = spawnSync('bash', ['--posix', '-x'], {
    input: command,
    env,
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  });
  const asked = readFileSync(join(directory.path, 'asked'), 'utf8').split('\n');
  expect(asked).toContain(`--jobs=${ENDED.join(',')},`);
  // The shell does nothing for each of them: a line of its trace begins with `+`.
  expect(stderr.split('\n').filter(line => /^\++ /.test(line)).length).toBeLessThan(50);
  const found = parse(stdout) ?? [];
  expect(found.filter(({ phase }) => phase === 'ended').map(({ id }) => id)).toEqual(ENDED);
  expect(found).toHaveLength(IDS.length + 1);
});
