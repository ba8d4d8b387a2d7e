import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { packageRoot } from '../shared/process/package-root.ts';

const SPREAD_LITERAL = ['...', '{'].join('');

test('no object spreads a literal: the compiler does not check the members of one for excess', () => {
  const files = execFileSync('git', ['ls-files', '*.ts', '*.tsx'], {
    cwd: packageRoot,
    encoding: 'utf8',
  });
  const found = files
    .split('\n')
    .filter(
      file => file && readFileSync(new URL(file, packageRoot), 'utf8').includes(SPREAD_LITERAL),
    );
  expect(found).toEqual([]);
});
