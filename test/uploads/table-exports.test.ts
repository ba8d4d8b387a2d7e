import { type IncomingMessage, get as open } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { tableFromIPC } from 'apache-arrow';
import { beforeAll, expect, test } from 'vitest';
import { formatNpyHeader } from '../../shared/arrays/npy-header.ts';
import { logIn } from '../harness/browser/browser-login.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { makeArray, makeTable, parse } from '../harness/clients/tables.ts';
import { makeModel } from '../harness/clients/uploads.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack, useStackDatabase } from '../harness/stacks/use-stack.ts';
import { outlastBrevity } from '../harness/wait-for.ts';

const ARROW = 'application/vnd.apache.arrow.stream';
const CSV = 'text/csv';

describeStack(undefined, 'rows as CSV and Arrow', form => {
  const { stack, client } = useStack(form);
  const database = useStackDatabase(stack);
  let mid: string;

  beforeAll(async () => {
    ({ mid } = await makeModel(client));
  });

  const get = (path: string, Accept: string, more: Record<string, string> = {}) =>
    client.fetch(path, { headers: { Accept, ...more } });
  const arrowOf = async (path: string) =>
    tableFromIPC(new Uint8Array(await (await get(path, ARROW)).arrayBuffer()));
  const csvOf = async (path: string) => (await get(path, CSV)).text();

  test('every type of value, exactly', async () => {
    const lines = [
      'i,d,b,t,ts,tz,s,day',
      '9223372036854775807,1.5,true,12:30:00.5,2020-01-01T10:00:00,2020-01-01T00:00:00Z,"x ""y""\r\nz",2020-02-29',
      '-9007199254740993,-0,false,,2020-01-02T01:02:03.123456,2019-12-31T22:00:00Z,,1969-12-31',
      ',0.0025,,23:59:59,,,"é,",',
      '1,2.5,true,00:00:01,2020-01-03T00:00:00,2020-01-03T00:00:00Z,"",2020-01-03',
    ];
    const csv = `${lines.join('\r\n')}\r\n`;
    const path = await makeTable(client, { mid, aid: 'types', csv });
    expect(await csvOf(`${path}/rows`)).toBe(csv);
    expect(await csvOf(`${path}/rows?columns=s&offset=1&limit=1`)).toBe('s\r\n""\r\n');

    const table = await arrowOf(`${path}/rows`);
    expect(table.schema.fields.map(({ name, type }) => `${name} ${type}`)).toEqual([
      'i Int64',
      'd Float64',
      'b Bool',
      't Time64<MICROSECOND>',
      'ts Timestamp<MICROSECOND>',
      'tz Timestamp<MICROSECOND, UTC>',
      's Utf8',
      'day Date32<DAY>',
    ]);
    const column = (name: string) => [...(table.getChild(name) ?? [])];
    expect(column('i')).toEqual([9223372036854775807n, -9007199254740993n, null, 1n]);
    expect(column('d')).toEqual([1.5, -0, 0.0025, 2.5]);
    expect(column('b')).toEqual([true, false, null, true]);
    expect(column('s')).toEqual(['x "y"\r\nz', null, 'é,', '']);
    const raw = (name: string) => [...(table.getChild(name)?.data[0]?.values ?? [])];
    expect(raw('t')).toEqual([45_000_500_000n, 0n, 86_399_000_000n, 1_000_000n]);
    expect(raw('ts').slice(0, 2)).toEqual([1577872800000000n, 1577926923123456n]);
    expect(raw('tz').slice(0, 2)).toEqual([1577836800000000n, 1577829600000000n]);
    expect(raw('day').slice(0, 2)).toEqual([18_321, -1]);
  });

  test('whole numbers past 2^53 are these also as digits, and where their CSV is uploaded again', async () => {
    const values = Buffer.from(new Float64Array([2 ** 57, -(2 ** 55) - 8]).buffer);
    const file = (shape: number[]) => Buffer.concat([formatNpyHeader('<f8', shape), values]);
    const { state } = await parse(client, { mid, parser: 'npy', files: { big: [file([2])] } });
    expect(state).toBe('succeeded');
    const text = async (path: string) => (await client.fetch(path)).text();
    const table = `/api/models/${mid}/tables/big`;
    expect(await text(`${table}/rows`)).toContain('[144115188075855872],[-36028797018963976]');
    expect(await text(`${table}/metadata`)).toContain('"max":144115188075855872');
    const array = await makeArray(client, { mid, aid: 'bigs', file: file([1, 2]) });
    expect(await text(array)).toContain('[144115188075855872,-36028797018963976]');
    expect(await text(`${array}/metadata`)).toContain('"max":144115188075855872');

    const csv = await csvOf(`${table}/rows`);
    const again = await makeTable(client, { mid, aid: 'again', csv });
    expect(await text(`${again}/metadata`)).toContain('"exact":true');
    expect(await csvOf(`${again}/rows`)).toBe(csv);
  });

  test('more rows than one piece holds, in order, also of a sorted view', async () => {
    const rows = 100_000;
    const word = (i: number) => `row ${i} .${'.'.repeat(i % 90)}`;
    const csv = `i,s\n${Array.from({ length: rows }, (_, i) => `${i},${word(i)}\n`).join('')}`;
    const path = await makeTable(client, { mid, aid: 'long', csv });
    const query = `offset=3&limit=${rows}`;
    expect(await csvOf(`${path}/rows?${query}`)).toBe(
      `i,s\r\n${Array.from({ length: rows - 3 }, (_, i) => `${i + 3},${word(i + 3)}\r\n`).join('')}`,
    );
    const table = await arrowOf(`${path}/rows?${query}&sort=-i`);
    expect(table.numRows).toBe(rows - 3);
    const [ids, words] = [table.getChild('i'), table.getChild('s')];
    for (let at = 0; at < table.numRows; at++) {
      const id = rows - 4 - at;
      if (ids?.get(at) !== BigInt(id) || words?.get(at) !== word(id))
        throw new Error(`row ${at} is ${ids?.get(at)}, ${words?.get(at)}`);
    }
    expect((await arrowOf(`${path}/rows?offset=${rows}&limit=5`)).numRows).toBe(0);
    expect(await csvOf(`${path}/rows?offset=${rows}&limit=5`)).toBe('i,s\r\n');
  });

  test('an export goes on where the login that it came with is to be extended meanwhile', async () => {
    const csv = `i,s\r\n${Array.from({ length: 250_000 }, (_, i) => `${i},${'.'.repeat(100)}\r\n`).join('')}`;
    const path = await makeTable(client, { mid, aid: 'slow', csv });
    const { cookies } = await logIn(stack, {
      username: stack.username,
      password: stack.password,
    });
    const headers = { Accept: CSV, Cookie: `serviceauth=${cookies.get('serviceauth')}` };
    const answer = await new Promise<IncomingMessage>((resolve, reject) =>
      open(`${stack.url}${path}/rows?limit=1000000`, { headers }, resolve).on('error', reject),
    );
    await database`update logins set expires = expires - interval '2 minutes'`;
    await outlastBrevity();
    expect((await buffer(answer)).toString() === csv).toBe(true);
  });

  test('the format is what Accept prefers; each has its own limit and entity tag', async () => {
    const path = `${await makeTable(client, { mid, aid: 'small', csv: 'a\n1\n' })}/rows`;
    const answers = await Promise.all(
      ['*/*', 'image/png', `${CSV};q=0.5, ${ARROW}`, CSV].map(accept => get(path, accept)),
    );
    expect(answers.map(({ headers }) => headers.get('Content-Type')?.split(';')[0])).toEqual([
      'application/json',
      'application/json',
      ARROW,
      CSV,
    ]);
    const tags = answers.map(({ headers }) => headers.get('ETag') ?? '');
    expect(new Set(tags).size).toBe(3);
    expect(answers.map(({ headers }) => headers.get('Vary'))).toEqual(Array(4).fill('Accept'));
    for (const [accept, tag, status] of [
      [CSV, tags[3], 304],
      [CSV, tags[2], 200],
    ] as const)
      expect((await get(path, accept, { 'If-None-Match': tag ?? '' })).status).toBe(status);
    expect(answers[3]?.headers.get('Content-Disposition')).toContain('filename="small.csv"');
    const json = await get(`${path}?limit=10001`, 'application/json');
    const { fields } = await expectProblem(json, 400, 'invalid_input');
    expect(fields?.[0]?.field).toBe('limit');
    await expectProblem(await get(`${path}?limit=1000001`, CSV), 400, 'invalid_input');
  });
});
