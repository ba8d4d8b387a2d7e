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
  const { command, parse } = slurm.status(IDS);
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
