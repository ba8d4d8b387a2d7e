import { afterAll, expect, test } from 'vitest';
import { isExact } from '../../api/tables/encode-value.ts';
import type { ColumnStatistics } from '../../shared/database/schema.ts';
import type { ParserParameters } from '../../shared/uploads/parsers.ts';
import { makeTable } from '../../workers/parsers/csv/make-table.ts';
import { parseTable } from '../harness/clients/parsed-table.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { Random } from '../harness/random.ts';

/** CSV_FILES=10000 tries as many; CSV_SEED begins elsewhere. */
const FILES = Number(process.env.CSV_FILES ?? 100);
const SEED = Number(process.env.CSV_SEED ?? 1);
/** Types are guessed from so few rows, so that small files have late ones. */
const SAMPLE = { rows: 6, cells: 1_000_000, least: 6 };

const directory = makeTempDir('csv-values');
afterAll(() => directory.remove());

const digits = (r: Random, count: number) =>
  Array.from({ length: count }, () => r.below(10)).join('');
const two = (n: number) => String(n).padStart(2, '0');
const day = (r: Random) =>
  `${r.pick(['1969', '2020', '0001', '9999', '0000', '1582'])}-${two(r.below(14))}-${two(r.below(33))}`;
const clock = (r: Random) =>
  `${two(r.below(26))}:${two(r.below(62))}:${two(r.below(62))}${r.pick(['', '', '.5', `.${digits(r, 6)}`, `.${digits(r, 9)}`])}`;
const zone = (r: Random) =>
  r.pick([
    'Z',
    '+00:00',
    '-00:00',
    '+05:30',
    '-0800',
    '+14:00',
    '+14:59',
    '-23:00',
    '+01',
    ' Z',
    ' -0500',
    'z',
  ]);

/** What stands in files, by kind; of each kind some is on purpose not what it seems to be. */
const KINDS: Record<string, (r: Random) => string> = {
  small: r => `${r.pick(['', '-'])}${r.below(1_000)}`,
  large: r => `${r.pick(['', '-'])}${r.pick([1 + r.below(9), ''])}${digits(r, 15 + r.below(6))}`,
  edge: r =>
    r.pick([
      ...['9007199254740991', '9007199254740992', '9007199254740993', '-9007199254740993'],
      ...[
        '9223372036854775807',
        '-9223372036854775808',
        '9223372036854775808',
        '18014398509481984',
      ],
    ]),
  odd: r =>
    r.pick(['007', '+5', '-0', '00', '0', ' 1', '1 ', '  -2  ', '1_000', '1,5', '0x10', '٣']),
  decimal: r =>
    `${r.pick(['', '-', '+'])}${r.pick(['', '0', '1', '12', '01'])}.${digits(r, r.below(20))}`,
  exponent: r =>
    `${r.pick(['', '-'])}${r.below(10)}${r.pick(['', '.', '.25'])}${r.pick(['e', 'E'])}${r.pick(['', '+', '-'])}${r.below(400)}`,
  hard: r =>
    r.pick([
      ...[
        '2.2250738585072014e-308',
        '4.9e-324',
        '2.4703282292062327e-324',
        '1.7976931348623157e308',
      ],
      ...['1.7976931348623159e308', '0.1', '123456789012345.67', '12345678901234567.8', '1e23'],
      ...[
        '8.41e21',
        '9007199254740993.0',
        '5e-325',
        '-0.0',
        '1.',
        '.5',
        '.',
        'e5',
        '1e',
        '1.0D+03',
      ],
    ]),
  special: r => r.pick(['nan', 'NaN', 'inf', '-Infinity', 'NA', 'null', 'None', '#N/A']),
  truth: r => r.pick(['true', 'false']),
  truths: r => r.pick(['true', 'false', 'True', 'FALSE', 'yes', 'no', 't', 'f', '1', '0', ' true']),
  date: r => `20${two(r.below(100))}-${two(1 + r.below(12))}-${two(1 + r.below(28))}`,
  dates: day,
  time: r => `${two(r.below(24))}:${two(r.below(60))}:${two(r.below(60))}${r.pick(['', '.25'])}`,
  times: r => `${clock(r)}${r.pick(['', '', zone(r)])}`,
  timestamp: r => `2020-01-${two(1 + r.below(28))}${r.pick(['T', ' '])}${two(r.below(24))}:30:00`,
  timestamps: r => `${day(r)}${r.pick(['T', ' ', 't'])}${clock(r)}`,
  zoned: r => `2020-01-${two(1 + r.below(28))}T${two(r.below(24))}:30:00.125${zone(r)}`,
  text: r =>
    r.pick(['a', 'b c', '"quoted"', 'x,y', 'line\nbreak', 'é', '😀', ' ', "'", '\\N', '%']),
  missing: () => '',
};
const NAMES = Object.keys(KINDS);

/** Rows of one kind a column, the later ones of another. */
function makeRows(r: Random): string[][] {
  const columns = Array.from({ length: 1 + r.below(5) }, () => ({
    first: r.pick(NAMES),
    late: r.pick(NAMES),
    share: r.pick([0, 0.1, 0.5]),
  }));
  const rows = 1 + r.below(40);
  return Array.from({ length: rows }, (_, i) =>
    columns.map(({ first, late, share }) => {
      const name = i >= SAMPLE.rows && r.next() < share ? late : first;
      return r.next() < 0.05 ? '' : (KINDS[name] as (r: Random) => string)(r);
    }),
  );
}

const toCsv = (rows: string[][]) =>
  rows
    .map(
      row =>
        `${row.map(cell => (/[",\n]/.test(cell) || (row.length === 1 && cell === '') ? `"${cell.replaceAll('"', '""')}"` : cell)).join(',')}\n`,
    )
    .join('');

/** Microseconds since 1970, or since midnight, by hand; undefined where the text is no such time. */
function instant(text: string): bigint | undefined {
  const match =
    /^(?:(\d{4})-(\d\d)-(\d\d))?(?:[T ]?(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?(?: ?(Z|([-+])(\d\d):?(\d\d)?))?$/.exec(
      text,
    );
  if (!match) return undefined;
  const [
    ,
    y = '1970',
    mo = '01',
    d = '01',
    h = '0',
    mi = '0',
    s = '0',
    f = '',
    ,
    sign,
    zh = '0',
    zm = '0',
  ] = match;
  const date = new Date(0);
  date.setUTCFullYear(Number(y), Number(mo) - 1, Number(d));
  if (date.getUTCDate() !== Number(d)) return undefined;
  const seconds = Number(h) * 3_600 + Number(mi) * 60 + Number(s);
  const offset = (sign === '-' ? -1 : 1) * (Number(zh) * 3_600 + Number(zm) * 60);
  return (
    BigInt(date.getTime()) * 1_000n +
    BigInt(seconds - offset) * 1_000_000n +
    BigInt(f.padEnd(6, '0'))
  );
}

const INTEGER = /^ *(0|-?[1-9]\d*) *$/;
const NUMBER = /^ *[-+]?((0|[1-9]\d*)(\.\d*)?|\.\d+)(e[-+]?\d+)? *$/i;
/** A number as Fortran writes it. */
const DOUBLE_PRECISION = /^ *[-+]?((0|[1-9]\d*)\.\d*|\.\d+)d[-+]?\d+ *$/i;

/** Whether the answer, as JSON text, says what the file says. V8 reads a decimal as the double nearest to it. */
function saysTheSame(
  type: ColumnStatistics['type'],
  exact: boolean,
  cell: string,
  json: string,
): boolean {
  if (cell === '') return json === 'null';
  const text = json.startsWith('"') ? (JSON.parse(json) as string) : json;
  switch (type) {
    case 'integer':
      return INTEGER.test(cell) && exact === json.startsWith('"') && BigInt(text) === BigInt(cell);
    case 'number': {
      const value = Number(text);
      const isFortran = DOUBLE_PRECISION.test(cell);
      if (!(NUMBER.test(cell) || isFortran) || !Number.isFinite(value)) return false;
      const isWhole = /^ *[-+]?\d+ *$/.test(cell);
      return (
        // Dictionaries of Parquet take -0 and 0 as one value.
        value === Number(isFortran ? cell.replace(/d/i, 'e') : cell) &&
        (!isWhole || BigInt(value) === BigInt(cell.replace('+', '')))
      );
    }
    case 'boolean':
      return cell === json && (json === 'true' || json === 'false');
    case 'date':
      return cell === text && instant(cell) !== undefined;
    case 'time':
      return /^\d\d:/.test(cell) && !/[-+Zz]/.test(cell) && instant(text) === instant(cell);
    case 'timestamp':
      return (
        /^\d{4}-.*:/.test(cell) &&
        /[Z]|[-+]\d\d(:?\d\d)?$/.test(cell.slice(10)) === text.endsWith('Z') &&
        instant(text) !== undefined &&
        instant(text) === instant(cell)
      );
    case 'text':
      return json === JSON.stringify(cell);
  }
}

/** The types that hold a cell, by the same grammar, to see that no column is wider than it must be. */
function couldBe(type: ColumnStatistics['type'], cell: string): boolean {
  switch (type) {
    case 'integer':
      return INTEGER.test(cell) && BigInt.asIntN(64, BigInt(cell)) === BigInt(cell);
    case 'number':
      return saysTheSame('number', false, cell, String(Number(cell.replace(/d/i, 'e'))));
    case 'boolean':
      return cell === 'true' || cell === 'false';
    default:
      return false;
  }
}

const readTable = (csv: string, parameters: ParserParameters<'csv'> = { header: false }) =>
  parseTable(directory.path, csv, files => makeTable({ ...files, parameters }, () => {}, SAMPLE));

test(`every cell of ${FILES} files comes back as what was written`, async () => {
  for (let seed = SEED; seed < SEED + FILES; seed++) {
    const rows = makeRows(new Random(seed));
    const csv = toCsv(rows);
    const table = await readTable(csv);
    expect([seed, table.rows]).toEqual([seed, rows.length]);
    for (const [i, column] of table.columns.entries()) {
      const cells = rows.map(row => row[i] as string);
      const wrong = cells.flatMap((cell, at) => {
        const json = table.json[i]?.[at] ?? 'nothing';
        return saysTheSame(column.type, isExact(column), cell, json) ? [] : [{ at, cell, json }];
      });
      expect([seed, i, column.type, wrong]).toEqual([seed, i, column.type, []]);
      const filled = cells.filter(cell => cell !== '');
      if (column.type === 'text' && filled.length > 0)
        for (const type of ['integer', 'number', 'boolean'] as const)
          expect([seed, i, type, filled.every(cell => couldBe(type, cell))]).toEqual([
            seed,
            i,
            type,
            false,
          ]);
    }
  }
}, 3_600_000);

test('a late value widens its column to the narrowest type that holds all', async () => {
  const late = async (first: string, last: string) => {
    const { columns, json } = await readTable(`${`${first}\n`.repeat(20)}${last}\n`);
    return [columns[0]?.type, json[0]?.[0], json[0]?.at(-1)];
  };
  for (const [first, last, type, shown, lastShown] of [
    ['1', '1.5', 'number', '1', '1.5'],
    ['1', '007', 'text', '"1"', '"007"'],
    ['10:00:00', '10:00:00+05:00', 'text', '"10:00:00"', '"10:00:00+05:00"'],
    ['2020-01-02', '2020-01-02T03:04:05', 'text', '"2020-01-02"', '"2020-01-02T03:04:05"'],
    [
      '2020-01-02T03:04:05Z',
      '2020-01-02T03:04:05',
      'text',
      '"2020-01-02T03:04:05Z"',
      '"2020-01-02T03:04:05"',
    ],
    ['true', 'yes', 'text', '"true"', '"yes"'],
    ['1.5', '9007199254740993', 'text', '"1.5"', '"9007199254740993"'],
    ['1.5', '9007199254740992', 'number', '1.5', '9007199254740992'],
    ['1', '9007199254740993', 'integer', '"1"', '"9007199254740993"'],
    ['1', '9223372036854775809', 'text', '"1"', '"9223372036854775809"'],
    ['1', '9223372036854775808', 'number', '1', '9223372036854775808'],
    ['1.5', 'nan', 'text', '"1.5"', '"nan"'],
    ['', '12', 'integer', 'null', '12'],
    ['1.5', '1.0D+03', 'number', '1.5', '1000'],
    ['1.5', '12D4', 'text', '"1.5"', '"12D4"'],
  ])
    expect([first, last, ...(await late(first as string, last as string))]).toEqual([
      first,
      last,
      type,
      shown,
      lastShown,
    ]);
});

test('times with a zone may have a space before it, and no seconds', async () => {
  const times = [
    ['2023-07-01 12:00:00 -0500', '2023-07-01T17:00:00Z'],
    ['2023-07-01T12:00:00.25 -05:00', '2023-07-01T17:00:00.25Z'],
    ['2023-07-01T12:00:00 Z', '2023-07-01T12:00:00Z'],
    ['2023-07-01T12:00Z', '2023-07-01T12:00:00Z'],
    ['2023-07-01T12:00+02:00', '2023-07-01T10:00:00Z'],
    ['2023-07-01 12:00 +0530', '2023-07-01T06:30:00Z'],
    ['2023-07-01T12:00:00+02', '2023-07-01T10:00:00Z'],
  ];
  const csv = `t\n${times.map(([written]) => written).join('\n')}\n`;
  for (const types of [undefined, { t: 'timestamp' as const }]) {
    const { columns, json } = await readTable(csv, { header: true, types });
    expect([columns[0]?.type, json[0]]).toEqual([
      'timestamp',
      times.map(([, instant]) => `"${instant}"`),
    ]);
  }
});

test('a type that was asked for holds, or its values are named', async () => {
  const asked = { header: true, types: { a: 'text', b: 'number', t: 'timestamp' } } as const;
  const { columns } = await readTable(`a,b,t\n${'1,2,2020-01-01T00:00:00Z\n'.repeat(20)}`, asked);
  expect(columns.map(({ type }) => type)).toEqual(['text', 'number', 'timestamp']);
  await expect(
    readTable(`a,b,t\n1,2,\n${'1,,\n'.repeat(20)}1,x,2020-01-01\n`, asked),
  ).rejects.toMatchObject({
    count: 2,
    problems: [
      { row: 23, column: 'b', reason: '"x" is not a finite number that a double holds' },
      { row: 23, column: 't' },
    ],
  });
  await expect(readTable('a,b\n1,2\n', asked)).rejects.toMatchObject({
    problems: [{ row: 1, column: 't', reason: 'there is no such column, though "types" names it' }],
  });
});
