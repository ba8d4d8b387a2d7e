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
  expect(say('Correct it.')).toBe('There is none. Correct it.');
});

test('a hint keeps all of its remedies', () => {
  const say = (hint: string) => describe(new WindlassError({ code: 'x', detail: 'No.', hint }));
  expect(
    say(
      'Correct the values, name those that stand for a missing one with "nulls", or ask for another type in "types".',
    ),
  ).toBe(
    `No. Correct the values, name those that stand for a missing one with --set 'nulls=["n/a"]', or ask for another type: --set 'types={"a":"text"}'.`,
  );
  expect(say('Use vp9 or av1, or another content-type.')).toBe(
    'No. Use --codec vp9 or av1, or another ending of the file: .mp4 or .webm.',
  );
  expect(say('Choose other names in "aids", or rename what is in the file.')).toBe(
    'No. Choose other names with --aid, or rename what is in the file.',
  );
  expect(say('Choose a shorter name in "aids", or rename what is in the file.')).toBe(
    'No. Choose a shorter name with --aid, or rename what is in the file.',
  );
  expect(
    say('Choose another name in "aids", or DELETE /api/models/(mid)/tables/(aid) first.'),
  ).toBe('No. Choose another name with --aid, or DELETE /api/models/(mid)/tables/(aid) first.');
  expect(say('Name another encoding with "encoding".')).toBe(
    'No. Name another encoding with --set encoding=NAME.',
  );
  expect(say('Name "encoding": "utf-16", or save the file as UTF-8.')).toBe(
    'No. Give --set encoding=utf-16, or save the file as UTF-8.',
  );
  expect(say('Leave "units" out if the file has no row of units.')).toBe(
    'No. Leave --set units out if the file has no row of units.',
  );
  expect(say('To have a table of it, upload it again with a parser, such as parser="csv".')).toBe(
    'No. To have a table of it, upload it again with a parser, such as --parser csv.',
  );
  expect(say('End some with DELETE /api/remotes/(sid). LIMIT_SESSIONS sets the limit.')).toBe(
    'No. End some: windlass close ID. LIMIT_SESSIONS sets the limit.',
  );
  // A column may have any name.
  const columns = 'Name columns as they are in the table: a, "units".';
  expect(say(columns)).toBe(`No. ${columns}`);
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
