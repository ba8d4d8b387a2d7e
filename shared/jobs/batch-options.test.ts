import { expect, test } from 'vitest';
import { batchRequest, directiveLines } from './batch.ts';
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
