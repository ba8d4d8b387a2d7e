import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { WindlassError } from '../../clients/typescript/src/error.ts';
import { CommandError } from '../command-error.ts';
import { describe } from './describe-error.ts';

test('what was said in several lines is one line', () => {
  const detail = 'The batch system refused the job: invalid partition\nsubmission failed\n';
  const error = new WindlassError({ code: 'batch_refused', detail, hint: 'Correct it.' });
  expect(describe(error)).toBe(
    'The batch system refused the job: invalid partition submission failed Correct it.',
  );
  expect(describe(new CommandError('a: not\nfound.'))).toBe('a: not found.');
});

test('what is to be done is said in words of this program', () => {
  const say = (hint: string) =>
    describe(new WindlassError({ code: 'x', detail: 'There is none.', hint }));
  expect(say('GET /api/users lists them.')).toBe('There is none. See: windlass user list.');
  expect(say('Give `cwd` as a directory that exists there.')).toBe(
    'There is none. Give --cwd a folder that exists there.',
  );
  expect(say('Choose other names in "aids", or rename what is in the file.')).toBe(
    'There is none. Choose other names with --aid, or rename what is in the file.',
  );
  expect(say('Name another encoding with "encoding".')).toBe(
    'There is none. Name its encoding, such as --set encoding=utf-16.',
  );
  expect(say('Correct it.')).toBe('There is none. Correct it.');
});

test('a body whose connection is cut is told in a line', async () => {
  const server = createServer((_, res) => {
    res.writeHead(200, { 'Content-Length': 1_000 });
    res.write('a part', () => setImmediate(() => res.destroy()));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const { port } = server.address() as AddressInfo;
    const answer = await fetch(`http://127.0.0.1:${port}/`);
    const cut = await answer.text().catch((error: unknown) => error);
    expect(describe(cut)).toContain('The connection was lost');
  } finally {
    server.close();
  }
});
