import { expect, test } from 'vitest';
import { requestSchema } from '../catalog.ts';
import { directiveLines, folderOf } from './batch.ts';

const batchRequest = requestSchema('batch');

import { findForbidden } from './batch-options.ts';

test.each([
  '--gres=gpu:1',
  '--hold',
  '-H',
  '-N2',
  '--no-requeue',
  '--exclusive',
  '--mail-user=me@example.org',
  '--wait-all-nodes=1',
  '--nodelist=n1',
])('%s may be set', option => {
  expect(findForbidden([option])).toBeUndefined();
});

test.each([
  '--job-name=x',
  '--job=x',
  '-J',
  '-Jx',
  '--output=x',
  '--out',
  '-ox',
  '--error=x',
  '-e',
  '--array=1-3',
  '--arr=1-3',
  '-a1-3',
  '--requeue',
  '--req',
  '--wrap=true',
  '--wr=true',
  '--wait',
  '-W',
  '--clusters=x',
  '-Mx',
  '--test-only',
  '--chdir=/',
  '-D/',
  '--parsable=1 --array=1'.split(' ')[1] ?? '',
  '--',
  '-',
  'script.sh',
  '',
])('%j is refused', option => {
  expect(findForbidden([option])).toEqual(expect.any(String));
});

test.each(['-p urgent', '-n 4', '-t\t10', '--partition urgent'])(
  'the value of %j would begin with a blank, or be lost',
  option => {
    expect(findForbidden([option])).toMatch(/is no option: .*-pdebug/);
    expect(
      findForbidden([option.replace(/\s/, option.startsWith('--') ? '=' : '')]),
    ).toBeUndefined();
  },
);

test.each([
  ['--array=1-3', '--array cannot be set: submit several jobs'],
  ['--out=x', '--out cannot be set: what it prints is stored'],
  ['-D/tmp', '-D cannot be set: give `cwd`'],
  ['-J=x', '-J cannot be set: give `name`'],
])('%s is refused with what to do instead, without its value', (option, words) => {
  expect(findForbidden([option])?.slice(0, words.length)).toBe(words);
});

test('a flag hides no other option behind it', () => {
  expect(findForbidden(['-Ha1-3'])).toMatch('several options');
  expect(findForbidden(['-Q'])).toBeUndefined();
});

test('the options in a script end with its first command', () => {
  const script =
    '#!/bin/sh\n# words\n#SBATCH --nodes=2\n\n#SBATCH -J mine # --array=1\necho\n#SBATCH --array=1\n';
  expect(directiveLines(script)).toEqual(['#SBATCH --nodes=2', '#SBATCH -J mine # --array=1']);
  expect(batchRequest.safeParse({ script }).success).toBe(true);
  for (const line of ['--array=1-3', '-a 1-3', '--nodes=2 -a1', '--wait'])
    expect([
      line,
      batchRequest.safeParse({ script: `#!/bin/sh\n#SBATCH ${line}\n` }).success,
    ]).toEqual([line, false]);
});

test.each([
  '"--array=1-3"',
  "--arr'ay'=1-3",
  '\\--wait',
  '"-a" 1-3',
  '"--ar\\ray=1-3"',
  "'--ar\\ray=1-3'",
  '--ar\\ray=1-3',
  '"-\\a" 1-3',
  // A backslash keeps no blank outside of quotes, and within them it keeps a quote.
  '-N1\\ --array=1-3',
  '--comment="a\\"" --array=1-3',
  "--comment='a\\'' --array=1-3",
])('quotes hide no option: %s', line => {
  const script = `#!/bin/sh\n#SBATCH ${line}\n`;
  expect(batchRequest.safeParse({ script }).success).toBe(false);
});

test.each([
  [' \n#!/bin/sh\ntrue\n', 'must begin with #!'],
  ['#SBATCH -N1\n', 'must begin with #!'],
  ['\ufeff#!/bin/sh\n', 'byte order mark'],
])('a script that names no interpreter is refused: %j', (script, words) => {
  expect(batchRequest.safeParse({ script }).error?.message).toContain(words);
});

test('lines of options in a command are refused, where no batch system reads them', () => {
  for (const command of ['#SBATCH -N1\ntrue', 'true\n  #SBATCH --partition=p\n'])
    expect(batchRequest.safeParse({ command }).error?.message).toContain(
      'only a `script` may have',
    );
  expect(batchRequest.safeParse({ command: "grep '#SBATCH' job.sh" }).success).toBe(true);
});

test('what is too long is looked at no further, and line ends take no time', () => {
  for (const field of ['command', 'script']) {
    const { error } = batchRequest.safeParse({ [field]: `#SBATCH\0${'\n'.repeat(2_000_000)}` });
    expect(error?.issues.filter(({ path }) => path[0] === field)).toMatchObject([
      { message: expect.stringContaining('long') },
    ]);
  }
  const begun = performance.now();
  expect(batchRequest.safeParse({ command: '\n'.repeat(100_000) }).success).toBe(true);
  // Where each line end is followed to the last one this takes 46 s.
  expect(performance.now() - begun).toBeLessThan(2_000);
});

test('a folder that is relative is refused with what one looks like', () => {
  const { error } = batchRequest.safeParse({ command: 'true', cwd: 'x' });
  expect(error?.message).toContain('or begin with ~/');
});

test('a quoted value is a value', () => {
  for (const value of ['"a --array=1 # b"', '"it\'s\\" --array=1"', "'a\\' --array=1'"]) {
    const script = `#!/bin/sh\n#SBATCH --comment=${value} -N1\n`;
    expect(batchRequest.safeParse({ script }).success).toBe(true);
  }
});

test.each(['--comment=a#b --array=1-3', '""#--array=1-3', '--comment=a# --chdir=here'])(
  'what follows a # outside of quotes is no option, also within a word: %s',
  line => {
    const script = `#!/bin/sh\n#SBATCH ${line}\n`;
    expect(batchRequest.safeParse({ script }).success).toBe(true);
  },
);

test.each([
  '--comment="a#b" --array=1-3',
  "--comment='a # b' --array=1-3",
  '--comment=a\\#b --array=1-3',
])('a # that is quoted hides no option: %s', line => {
  const script = `#!/bin/sh\n#SBATCH ${line}\n`;
  expect(batchRequest.safeParse({ script }).success).toBe(false);
});

test('a script with line ends of DOS is refused, as sbatch does', () => {
  const { error } = batchRequest.safeParse({ script: '#!/bin/bash\r\necho\r\n' });
  expect(error?.message).toContain('dos2unix');
});

test.each([
  ['--chdir=/a', '/a'],
  ['--chdir /a', '/a'],
  ['-D /a', '/a'],
  ['-D/a -N1', '/a'],
  ['--chdir="/a b"', '/a b'],
  [`--chdir="/it's \\"\\a\\""`, `/it's "a"`],
  ['--comment=--chdir -N1', undefined],
  ['--chdir=/a\n#SBATCH -D /b', '/b'],
  ['--chdir=/a#b -D /c', '/a'],
  ['--chdir=/a\\#b', '/a#b'],
])('a script’s %j is the folder of its job', (line, folder) => {
  const script = `#!/bin/sh\n#SBATCH ${line}\n`;
  expect(folderOf({ script })).toBe(folder);
  expect(folderOf({ script, cwd: '/own' })).toBe('/own');
});

test('a folder that is relative to nothing is refused', () => {
  const script = '#!/bin/sh\n#SBATCH -D here\n';
  expect(batchRequest.safeParse({ script }).error?.message).toContain('--chdir');
});

test('a command is limited by its bytes, of which a shell takes so many', () => {
  const of = (command: string) => batchRequest.safeParse({ command });
  expect(of('ä'.repeat(65_500)).success).toBe(true);
  expect(of('ä'.repeat(65_501)).error?.issues[0]?.message).toContain('131,000 bytes');
});
