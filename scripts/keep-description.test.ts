import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';

const PROGRAM = 'dist/scripts/keep-description.js';

test.each([
  ['nothing', '', 'Nothing was given on standard input.'],
  ['no JSON', '<html>', 'What was given on standard input is no description of an API.'],
  [
    'a problem',
    '{"status":401,"title":"Log in."}',
    'What was given on standard input is no description of an API.',
  ],
])('%s is told in one line, and nothing is kept', (_what, input, said) => {
  const { status, stderr } = spawnSync(process.execPath, [PROGRAM], { input, encoding: 'utf8' });
  expect({ status, stderr }).toEqual({ status: 1, stderr: `${said}\n` });
});
