import { expect, test } from 'vitest';
import { PARSERS } from '../../../shared/uploads/parsers.ts';
import type { ParserParameters } from './parser-parameters.ts';
import { Windlass } from './windlass.ts';

/** A client of a service that refuses everything, and what is asked of that. */
function connect() {
  const asked: string[] = [];
  const fetch: typeof globalThis.fetch = async (...given) => {
    const request = new Request(...given);
    const { method, url } = request;
    const { aids } = (await request.json()) as { aids: string[] };
    asked.push(`${method} ${new URL(url).pathname} ${aids}`);
    return Response.json({ code: 'forbidden', detail: 'No.' }, { status: 403 });
  };
  return { asked, client: new Windlass({ url: 'http://127.0.0.1', token: 'x', fetch }) };
}

test('what is no file begins no upload', async () => {
  const { asked, client } = connect();
  const none = [[], 'a/path', Buffer.from('a'), [new File([], 'a'), 'a'], undefined, new Set()];
  for (const given of none as never[])
    await expect(client.upload(given, { mid: 'm', parser: 'blob' })).rejects.toMatchObject({
      code: 'invalid_input',
      hint: 'Give a File or Blob, or openFile(path).',
    });
  expect(asked).toEqual([]);
});

test("a page's FileList is taken", async () => {
  const { asked, client } = connect();
  // As a page has it: no array, and its members by their numbers.
  const list = { length: 2, 0: new File(['a'], 'a'), 1: new File(['b'], 'b') };
  const begun = client.upload(list, { mid: 'm', parser: 'blob' });
  await expect(begun).rejects.toMatchObject({ code: 'forbidden' });
  expect(asked).toEqual(['POST /api/uploads a,b']);
});

test('unless it is said otherwise, files are no inputs of the model, and have their names', async () => {
  const bodies: unknown[] = [];
  const fetch: typeof globalThis.fetch = async (...given) => {
    bodies.push(await new Request(...given).json());
    return Response.json({ code: 'forbidden', detail: 'No.' }, { status: 403 });
  };
  const client = new Windlass({ url: 'http://127.0.0.1', token: 'x', fetch });
  const to = { mid: 'm', parser: 'blob' };
  for (const options of [to, { ...to, input: undefined, aids: undefined }, { ...to, input: true }])
    await expect(client.upload(new File(['a'], 'a'), options)).rejects.toThrow('No.');
  const body = { ...to, input: false, aids: ['a'] };
  expect(bodies).toEqual([body, body, { ...body, input: true }]);
});

test('an upload that there is not to be resumed is a new one', async () => {
  const { asked, client } = connect();
  for (const resume of [undefined, null])
    await expect(
      client.upload(new File(['a'], 'a'), { mid: 'm', parser: 'blob', resume }),
    ).rejects.toMatchObject({ code: 'forbidden' });
  expect(asked).toEqual(['POST /api/uploads a', 'POST /api/uploads a']);
});

test("the parsers' parameters have types, and nothing else does", () => {
  const typed = {
    delimiter: true,
    header: true,
    quote: true,
    encoding: true,
    decimal: true,
    comment: true,
    skip: true,
    units: true,
    nulls: true,
    tolerance: true,
    text: true,
    types: true,
  } satisfies Record<keyof ParserParameters, true>;
  const known = Object.values(PARSERS).flatMap(({ parameters }) => Object.keys(parameters.shape));
  expect(Object.keys(typed).sort()).toEqual([...new Set(known)].sort());
});

test('sizes and numbers with which nothing would ever be sent are refused before anything is asked', async () => {
  const { asked, client } = connect();
  for (const sending of [
    { parallel: 0 },
    { parallel: 1.5 },
    { parallel: Number.NaN },
    { partSize: 0 },
    { partSize: -1 },
  ])
    for (const target of [{ mid: 'm', parser: 'blob' }, { resume: 'u' }])
      await expect(client.upload(new File(['a'], 'a'), { ...target, ...sending })).rejects.toThrow(
        `${Object.keys(sending)} is ${Object.values(sending)}: give a whole number from 1 on.`,
      );
  expect(asked).toEqual([]);
});
