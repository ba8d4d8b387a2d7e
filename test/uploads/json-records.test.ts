import { spawnSync } from 'node:child_process';
import { mkdtemp, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, expect, test } from 'vitest';
import { isExact } from '../../api/tables/encode-value.ts';
import { findProgram } from '../../scripts/programs.ts';
import { readFile } from '../../workers/parsers/read-file.ts';
import { parseTable } from '../harness/clients/parsed-table.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';

const directory = makeTempDir('json-records');
afterAll(() => directory.remove());

async function read(parser: 'json' | 'ndjson', content: string | Uint8Array) {
  return parseTable(directory.path, content, async files => {
    const request = { kind: 'file', parser, parameters: {}, expanded: 1 << 30, ...files } as const;
    const [made] = await readFile(request, () => {});
    return { rows: 0, ...made };
  });
}

async function look(parser: 'json' | 'ndjson', content: string) {
  const { columns, json } = await read(parser, content);
  return columns.map(({ name, type }, i) => [`${name} ${type}`, ...(json[i] ?? [])].join(' '));
}

const RECORDS = [
  '{"n": 9007199254740993, "x": 1.50, "t": "007", "d": "2020-01-02", "b": true, "m": 1}',
  ' {"x": -2e3, "n": -5, "t": "", "b": false, "m": "1", "o": {"a": [1, "}]"]}}\t',
  '{"t": "a\\n\\"\\u00e9\\ud83d\\ude00", "n": null, "late": [], "x": 3, "m": true, "d": "2020-01-03"}',
];
const EXPECTED = [
  'n integer "9007199254740993" "-5" null',
  'x number 1.5 -2000 3',
  't text "007" "" "a\\n\\"é😀"',
  'd date "2020-01-02" null "2020-01-03"',
  'b boolean true false null',
  'm text "1" "1" "true"',
  'o text null "{\\"a\\": [1, \\"}]\\"]}" null',
  'late text null null "[]"',
];

test('records are a table, each value as it is written', async () => {
  expect(await look('ndjson', `${RECORDS.join('\n')}\n`)).toEqual(EXPECTED);
  expect(await look('ndjson', `\ufeff\n${RECORDS.join('\r\n\r\n')}`)).toEqual(EXPECTED);
  expect(await look('json', `[${RECORDS.join(',')}]`)).toEqual(EXPECTED);
  expect(await look('json', `\ufeff \n[\n${RECORDS.join('\n,\n')}\n]\n`)).toEqual(EXPECTED);
});

test('values of lines that look like rows', async () => {
  const logs = Array.from({ length: 20_000 }, (_, n) =>
    Array.from({ length: 8 }, (_, k) => `2020-01-01 10:00:0${k},INFO step ${k} of ${n}`).join('\n'),
  );
  const { json } = await read(
    'ndjson',
    logs.map((log, id) => JSON.stringify({ id, log })).join('\n'),
  );
  expect(json[0]?.every((id, n) => id === String(n))).toBe(true);
  expect(json[1]).toHaveLength(logs.length);
  expect(json[1]?.findIndex((log, n) => log !== JSON.stringify(logs[n]))).toBe(-1);
});

test('a value is in the column of its name, also where others differ by case alone', async () => {
  expect(await look('ndjson', '{"T": 300, "t": 1, "t_1": 9}')).toEqual([
    'T integer 300',
    't_2 integer 1',
    't_1 integer 9',
  ]);
});

test('what is no array of records is an error with its place', async () => {
  for (const [content, row, reason] of [
    [' ', 1, 'never closed'],
    ['{"a": 1}', 1, 'not one array'],
    ['[{"a": 1}', 1, 'never closed'],
    ['[{"a": 1}] x', 1, 'not one array'],
    ['[{"a": 1}] "x"', 1, 'not one array'],
    ['[{"a": 1}] "x', 1, 'not one array'],
    ['[{"a": 1}], [2]', 1, 'not one array'],
    ['[{"a": 1}, 2]', 1, 'not a record'],
    ['[{"a": 1},\n 2\n]', 2, 'not a record'],
    ['[{"a": 1},\n ]', 2, 'not JSON'],
    ['[\n{"a": 1}, {"a": 1, "a": 2}]', 2, 'there twice'],
    ['\n[\r\n  {\n    "a": "x\\n"\n  },\n  {\n    "a": tru\n  }\n]', 6, 'not JSON'],
    ['[\n{"a": 1}\n] x', 3, 'not one array'],
    [`[\n{"a": 1},\n{"a":\n"${'x'.repeat(3_000_000)}"}]`, 3, 'longer than'],
    ['[{"a": 1,}]', 1, 'not JSON'],
    ['[{"a": NaN}]', 1, 'not JSON'],
    ['[{"a": "\\u0000"}]', 1, 'NUL'],
    ['[{"a": "\\ud800"}]', 1, 'surrogate'],
  ] as const)
    await expect(read('json', content), content).rejects.toMatchObject({
      problems: [{ row, reason: expect.stringContaining(reason) }],
    });
  await expect(read('json', '')).rejects.toThrow('the file is empty');
  // As Python's json.dump() writes them.
  for (const number of ['NaN', 'Infinity', '-Infinity'])
    for (const parser of ['json', 'ndjson'] as const)
      await expect(
        read(parser, parser === 'json' ? `[{"a": ${number}}]` : `{"b": [${number}]}`),
      ).rejects.toMatchObject({
        problems: [{ row: 1, reason: expect.stringContaining('it is not JSON') }],
        hint: expect.stringContaining('JSON has neither NaN nor Infinity: write null'),
      });
  await expect(read('ndjson', '{"a": Nan}')).rejects.not.toHaveProperty(
    'hint',
    expect.stringContaining('NaN'),
  );
  await expect(read('json', '[]')).rejects.toThrow('no record');
  await expect(read('ndjson', '{"a": 1}\n\n{"a": 2')).rejects.toMatchObject({
    problems: [{ row: 3 }],
  });
  await expect(read('ndjson', Buffer.from('{"a": "\xff"}', 'latin1'))).rejects.toThrow('UTF-8');
  for (const text of ['[{"a": 1}]', '\ufeff{"a": 1}'])
    for (const bytes of [Buffer.from(text, 'utf16le'), Buffer.from(text, 'utf16le').swap16()])
      for (const parser of ['json', 'ndjson'] as const)
        await expect(read(parser, bytes)).rejects.toThrow('the file is UTF-16');
});

test('bombs are refused in bounded memory', async () => {
  const deep = '['.repeat(900_000);
  await expect(read('ndjson', `{"a": ${deep}${']'.repeat(900_000)}}`)).rejects.toMatchObject({
    name: 'TableError',
  });
  await expect(read('json', `[{"a": "${'x'.repeat(3_000_000)}"}]`)).rejects.toThrow('longer than');
  const wide = Array.from({ length: 3_000 }, (_, i) => `"c${i}": ${i}`).join(', ');
  await expect(read('ndjson', `{${wide}}`)).rejects.toThrow('more than 2,500 columns');
});

test('rows without values take no more of the disk than their file may', async () => {
  const names = Array.from({ length: 2_500 }, (_, i) => `"c${i}": ${i}`).join(', ');
  for (const [rows, expanded, limit, what] of [
    [5_000, 10_000_000, 10_000_000, 'the table takes more than 10,000,000 bytes'],
    // A hundred times the file is less.
    [27_500, 1 << 30, 64 << 20, 'the table has more than 67,108,864 missing values'],
  ] as const) {
    const scratch = await mkdtemp(join(directory.path, 'thin-'));
    const input = join(scratch, 'upload');
    const output = join(scratch, 'table.parquet');
    await writeFile(input, `{${names}}\n${'{}\n'.repeat(rows)}`);
    const resources = { scratch, input, output, memory: 2 ** 30, threads: 2 } as const;
    await expect(
      readFile(
        { kind: 'file', parser: 'ndjson', parameters: {}, expanded, ...resources },
        () => {},
      ),
    ).rejects.toThrow(what);
    expect((await stat(`${output}.csv`)).size).toBeLessThanOrEqual(limit * 1.01);
  }
});

test('compressed, a table of many names and few values is what it is without', async () => {
  const rows = Array.from({ length: 3_000 }, (_, n) => `{"c${n % 1_000}":${n}}\n`).join('');
  for (const bytes of [Buffer.from(rows), gzipSync(rows)]) {
    const scratch = await mkdtemp(join(directory.path, 'thin-'));
    const input = join(scratch, 'upload');
    await writeFile(input, bytes);
    const output = join(scratch, 'table.parquet');
    const resources = { scratch, input, output, memory: 2 ** 30, threads: 2 } as const;
    const [made] = await readFile(
      { kind: 'file', parser: 'ndjson', parameters: {}, expanded: 1 << 30, ...resources },
      () => {},
    );
    expect(made).toMatchObject({ rows: 3_000 });
  }
});

const python = findProgram('python3');

test.skipIf(!python)('every value is what Python reads (needs python3)', async () => {
  // Python writes the file and what it reads of it: integers in full, doubles by their shortest text.
  const script = `
import json, random
r = random.Random(7)
values = [lambda: r.randint(-2**63, 2**63 - 1), lambda: r.randint(-9, 9), lambda: r.uniform(-1, 1) * 10 ** r.randint(-300, 300),
  lambda: ''.join(chr(r.choice([34, 92, 10, 44, 9, 228, 0x20ac, 0x1f600, 65])) for _ in range(r.randint(0, 9))), lambda: r.random() < .5, lambda: None]
kinds = [r.choice(values) for _ in range(12)] + values
records = [{f'k{i}': kind() for i, kind in enumerate(kinds) if r.random() < .9} for _ in range(300)]
text = '\\n'.join(json.dumps(x, ensure_ascii=r.random() < .5) for x in records)
print(json.dumps({'text': text, 'cells': {f'k{i}': [
  None if x.get(f'k{i}') is None else [type(x[f'k{i}']).__name__, x[f'k{i}'] if isinstance(x[f'k{i}'], str) else repr(x[f'k{i}'])]
  for x in map(json.loads, text.split('\\n'))] for i in range(len(kinds))}}))`;
  const { stdout, stderr } = spawnSync(python as string, ['-c', script], {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  expect(stderr).toBe('');
  const { text, cells } = JSON.parse(stdout) as {
    text: string;
    cells: Record<string, ([type: string, value: string] | null)[]>;
  };
  const { columns, json, rows } = await read('ndjson', text);
  expect(rows).toBe(300);
  for (const [i, column] of columns.entries())
    for (const [row, cell] of (cells[column.name] ?? []).entries()) {
      const answer = JSON.parse(json[i]?.[row] ?? '') as unknown;
      const place = [column.name, column.type, row];
      if (cell === null) expect([...place, answer]).toEqual([...place, null]);
      else if (cell[0] === 'str') expect([...place, answer]).toEqual([...place, cell[1]]);
      else if (cell[0] === 'bool')
        expect([...place, answer]).toEqual([...place, cell[1] === 'True']);
      else if (cell[0] === 'float') expect([...place, answer]).toEqual([...place, Number(cell[1])]);
      else {
        const same = isExact(column) ? answer : BigInt(answer as number).toString();
        expect([...place, same]).toEqual([...place, cell[1]]);
      }
    }
});
