import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { dateFormatOf } from '../../workers/parsers/xlsx/date-formats.ts';
import { parseFile } from '../harness/clients/parsed-file.ts';
import { missingReaders, runReader } from '../harness/files/format-readers.ts';
import { damage, expectReadOrRefused, parseConfined } from '../harness/files/hostile-files.ts';
import {
  type WorkbookParts as Parts,
  makeWorkbook as workbook,
} from '../harness/files/make-workbook.ts';
import { makeZip } from '../harness/files/make-zip.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { describeUnless } from '../harness/skip.ts';

const directory = makeTempDir('xlsx');
afterAll(() => directory.remove());

const read = (content: Uint8Array, parameters = {}) =>
  parseFile(directory.path, { parser: 'xlsx', content, parameters });

const cell = (inner: string, attributes = '') => `<x:row><x:c ${attributes}>${inner}</x:c></x:row>`;

test('texts of all kinds, rows and cells without places, gaps', async () => {
  const content = workbook({
    strings:
      '<x:si><x:t>name</x:t></x:si><x:si><x:r><x:t>a</x:t></x:r><x:r><x:t xml:space="preserve"> b&amp;</x:t></x:r><x:rPh><x:t>no</x:t></x:rPh></x:si><x:si><x:t>x_x000D_y_x005F_x000D_</x:t></x:si>',
    sheet: `<x:row r="3"><x:c r="B3" t="s"><x:v>0</x:v></x:c><x:c r="D3" t="inlineStr"><x:is><x:t>v</x:t></x:is></x:c></x:row>
      <x:row/><x:row r="7"><x:c r="B7" t="s"><x:v>1</x:v></x:c><x:c/><x:c t="b"><x:v>1</x:v></x:c></x:row>
      <x:row><x:c r="B8" t="s"><x:v>2</x:v></x:c><x:c r="D8" t="b"><x:f>1&lt;0</x:f><x:v>0</x:v></x:c></x:row>
      <x:row><x:c r="B9" t="str"><x:f>""</x:f><x:v/></x:c></x:row>`,
  });
  expect((await read(content)).S?.json).toEqual({
    'name text': ['"a b&"', '"x\\ry_x000D_"', '""'],
    'v boolean': ['true', 'false', 'null'],
  });
  expect((await read(content, { header: false })).S?.json).toEqual({
    'column0 text': ['"name"', '"a b&"', '"x\\ry_x000D_"', '""'],
    'column1 text': ['"v"', '"true"', '"false"', 'null'],
  });
});

test('a first row of nothing but texts for values is data', async () => {
  for (const [type, text] of [
    ['e', '#N/A'],
    ['str', 'NA'],
    ['str', '00123'],
  ]) {
    const sheet = `${cell(`<x:v>${text}</x:v>`, `t="${type}"`)}${cell('<x:v>x</x:v>', 't="str"')}`;
    expect((await read(workbook({ sheet }))).S?.json).toEqual({
      'column0 text': [`"${text}"`, '"x"'],
    });
  }
});

test('a cell without the number of its text is empty', async () => {
  const content = workbook({
    strings: '<x:si><x:t>first</x:t></x:si>',
    sheet: `<x:row><x:c t="s"><x:v/></x:c><x:c t="s"><x:v>0</x:v></x:c></x:row>
      <x:row><x:c r="A2" t="s"><x:v> </x:v></x:c><x:c r="B2"><x:v>2</x:v></x:c></x:row>
      <x:row><x:c r="A3"><x:v>1</x:v></x:c></x:row>`,
  });
  expect((await read(content, { header: false })).S?.json).toEqual({
    'column0 integer': ['null', 'null', '1'],
    'column1 text': ['"first"', '"2"', 'null'],
  });
});

test('formats say what a number of days is', async () => {
  for (const [code, format] of [
    ['yyyy-mm-dd', 'date'],
    ['[$-407]d. mmmm yyyy;@', 'date'],
    ['mmm', 'date'],
    ['h:mm AM/PM', 'time'],
    ['mm:ss.0', 'time'],
    ['dd/mm/yy hh:mm', 'timestamp'],
    ['[h]:mm', undefined],
    ['General', undefined],
    ['0.00E+00', undefined],
    ['[Red]0;"days" 0', undefined],
    ['#,##0\\ "h"', undefined],
  ] as const)
    expect([code, dateFormatOf(code)]).toEqual([code, format]);
  const styles =
    '<x:numFmts><x:numFmt numFmtId="200" formatCode="yyyy\\-mm\\-dd\\ hh:mm"/></x:numFmts><x:cellStyleXfs><x:xf numFmtId="14"/></x:cellStyleXfs><x:cellXfs><x:xf numFmtId="0"/><x:xf numFmtId="14"/><x:xf numFmtId="200"/><x:xf numFmtId="21"/></x:cellXfs>';
  const row = [1, 2, 3]
    .map(s => `<x:c s="${s}"><x:v>${s === 3 ? 0.75 : 43831}</x:v></x:c>`)
    .join('');
  const expected = (day: string) => ({
    'column0 date': [`"${day}"`],
    'column1 timestamp': [`"${day}T00:00:00"`],
    'column2 time': ['"18:00:00"'],
  });
  const sheet = `<x:row>${row}</x:row>`;
  expect((await read(workbook({ styles, sheet }))).S?.json).toEqual(expected('2020-01-01'));
  const conditional =
    '<x:dxfs><x:dxf><x:numFmt numFmtId="200" formatCode="0.00"/></x:dxf><x:dxf><x:numFmt numFmtId="0" formatCode="h:mm"/></x:dxf></x:dxfs>';
  const both = workbook({ styles: styles + conditional, sheet });
  expect((await read(both)).S?.json).toEqual(expected('2020-01-01'));
  const book = '<workbookPr date1904="1"/>';
  expect((await read(workbook({ styles, sheet, book }))).S?.json).toEqual(expected('2024-01-02'));
  const first = workbook({ styles, book, sheet: cell('<x:v>0</x:v>', 's="1"') });
  expect((await read(first)).S?.json).toEqual({ 'column0 date': ['"1904-01-01"'] });
  // A time at the end of the day.
  const late = ['0.5', '0.99999999999'].map(days => cell(`<x:v>${days}</x:v>`, 's="3"')).join('');
  for (const system of ['', book])
    expect((await read(workbook({ styles, book: system, sheet: late }))).S?.json).toEqual({
      'column0 time': ['"12:00:00"', '"23:59:59.999"'],
    });
  // A formula that refers to an empty cell is 0.
  const zero = ['43831', '0'].map(days =>
    [days, days, '7']
      .map((value, i) => `<x:c s="${(i + 1) % 3}"><x:v>${value}</x:v></x:c>`)
      .join(''),
  );
  const rows = zero.map(cells => `<x:row>${cells}</x:row>`).join('');
  expect((await read(workbook({ styles, sheet: rows }))).S?.json).toEqual({
    'column0 date': ['"2020-01-01"', 'null'],
    'column1 timestamp': ['"2020-01-01T00:00:00"', 'null'],
    'column2 integer': ['7', '7'],
  });
  expect((await read(workbook({ styles, sheet: cell('<x:v>0</x:v>', 's="3"') }))).S?.json).toEqual({
    'column0 time': ['"00:00:00"'],
  });
  for (const days of ['60.5', '-1', '3000000'])
    await expect(
      read(workbook({ styles, sheet: cell(`<x:v>${days}</x:v>`, 's="1"') })),
    ).rejects.toThrow(`there is no day ${days}`);
});

test('what says no value is an error with its place', async () => {
  for (const [sheet, reason] of [
    [cell('<x:f>1+1</x:f>'), 'a formula has no stored result'],
    // As openpyxl writes it.
    [cell('<x:f>A2*2</x:f><x:v></x:v>'), 'a formula has no stored result'],
    [cell('<x:v>1,5</x:v>'), '"1,5" is no number'],
    [cell('<x:v>9</x:v>', 't="s"'), 'not in the list of texts'],
    [cell('<x:v>0x0</x:v>', 't="s"'), 'not in the list of texts'],
    [cell('<x:f>A2</x:f><x:v></x:v>', 't="s"'), 'a formula has no stored result'],
    [cell('<x:v>2</x:v>', 't="b"'), 'no boolean'],
    [cell('<x:v>2</x:v>', 't="odd"'), 'its type "odd" is unknown'],
    [`${cell('<x:v>1</x:v>')}<x:row r="1"/>`, 'after this row comes row 1'],
    ['<x:row><x:c r="C1"/><x:c r="B1"/></x:row>', 'after this cell comes B1'],
    ['<x:row r="2000000"/>', 'after this row comes row 2000000'],
    ['<x:row><x:c r="XFE1"/></x:row>', 'after this cell comes XFE1'],
    ['', 'there is no sheet with a value'],
    ['<x:row>', 'is damaged'],
    [cell('<x:v>&lol;</x:v>'), 'is damaged'],
    ['<x:row>'.repeat(100), 'nested too deeply'],
  ] as const)
    await expect(read(workbook({ sheet })), reason).rejects.toThrow(reason);
  await expect(read(makeZip([{ name: 'a', content: 'x' }]))).rejects.toThrow('no workbook');
  const laughs = '<!DOCTYPE lol [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><lol>&b;</lol>';
  await expect(read(makeZip([{ name: '_rels/.rels', content: laughs }]))).rejects.toThrow(
    'it has a document type',
  );
  const bad = cell('<x:v>x</x:v>');
  await expect(read(workbook({ sheet: bad }))).rejects.toMatchObject({
    problems: [{ row: 1, column: 'A' }],
  });
});

test('bombs are refused in bounded time and memory', async () => {
  const confined = (parts: Parts) =>
    parseConfined(directory.path, { parser: 'xlsx', content: workbook(parts) });
  const [texts, long, wide] = await Promise.allSettled([
    confined({ sheet: '', strings: `<x:si><x:t>${' '.repeat(30_000_000)}</x:t></x:si>` }),
    confined({ sheet: cell(`<x:v>${'1'.repeat(9_000_000)}</x:v>`) }),
    confined({ sheet: `<x:row>${'<x:c><x:v>1</x:v></x:c>'.repeat(3_000)}</x:row>` }),
  ]);
  for (const [result, reason] of [
    [texts, 'a text is longer'],
    [long, 'a text is longer'],
    [wide, '3,000 columns'],
  ] as const)
    expect(String((result as PromiseRejectedResult).reason)).toContain(reason);
});

describeUnless(missingReaders, 'workbooks of openpyxl', () => {
  test('every value is what openpyxl reads', async () => {
    const path = join(directory.path, 'made.xlsx');
    const said = runReader<Record<string, [string, unknown[]][]>>(
      `
import datetime as d, json, random, sys
import openpyxl
r = random.Random(5)
text = lambda: ''.join(chr(r.choice([34, 38, 60, 44, 10, 228, 0x20ac, 0x1f600, 65, 32])) for _ in range(r.randint(1, 9)))
day = lambda: d.datetime(1900, 3, 1) + d.timedelta(days=r.randint(0, 2900000))
kinds = {
  'integer integer': lambda: r.randint(-2**50, 2**50), 'number number': lambda: r.choice([r.uniform(-1, 1) * 10 ** r.randint(-200, 200), 0.1, 1e21]),
  'bool boolean': lambda: r.random() < .5, 'text text': text, 'date date': lambda: day().date(),
  'stamp timestamp': lambda: r.choice([day(), day() + d.timedelta(milliseconds=r.randint(0, 86399999))]), 'time time': lambda: d.time(r.randint(0, 23), 5, r.randint(0, 59)),
  'mixed text': lambda: r.choice([1, 'x', True, d.date(2020, 1, 2)]), 'duration number': lambda: d.timedelta(hours=r.randint(1, 90)),
}
book = openpyxl.Workbook()
book.remove(book.active)
for name in ['Day', 'Ärger & Co']:
  sheet = book.create_sheet(name)
  sheet.append(list(kinds))
  for _ in range(300): sheet.append([None if r.random() < .1 else make() for make in kinds.values()])
book.create_sheet('empty')
book['Day'].merge_cells('A2:B2')
book.save(sys.argv[1])
def say(v):
  if isinstance(v, d.datetime): return v.isoformat(timespec='milliseconds').replace('.000', '').rstrip('0') if v.microsecond else v.isoformat()
  if isinstance(v, d.date): return v.isoformat()
  if isinstance(v, d.time): return v.isoformat()
  if isinstance(v, d.timedelta): return v.total_seconds() / 86400
  return v
back = openpyxl.load_workbook(sys.argv[1])
def cells(sheet, c, name):
  values = [row[c].value for row in sheet.iter_rows(min_row=2)]
  if name.startswith('date'): values = [v and v.date() for v in values]
  if name.startswith('mixed'): return [None if v is None else '2020-01-02' if isinstance(v, d.datetime) else ('true' if v else 'false') if isinstance(v, bool) else str(v) for v in values]
  return [say(v) for v in values]
print(json.dumps({s: [[name, cells(back[s], c, name)] for c, name in enumerate(kinds)] for s in ['Day', 'Ärger & Co']}))`,
      path,
    );
    const made = await read(readFileSync(path));
    expect(Object.keys(made)).toEqual(Object.keys(said));
    for (const [sheet, columns] of Object.entries(said)) {
      const { json = {} } = made[sheet] ?? {};
      expect(Object.keys(json)).toEqual(columns.map(([name]) => `${name} ${name.split(' ')[1]}`));
      for (const [name, values] of columns) {
        const cells = json[`${name} ${name.split(' ')[1]}`] ?? [];
        const found = cells.map(text => JSON.parse(text) as unknown);
        if (!name.startsWith('duration')) expect({ [name]: found }).toEqual({ [name]: values });
        else
          for (const [i, value] of values.entries())
            if (value === null) expect(found[i]).toBe(null);
            else expect(found[i]).toBeCloseTo(value as number, 9);
      }
    }
    for (const content of damage(readFileSync(path), { seed: 2, times: 12 }))
      await expectReadOrRefused(directory.path, { parser: 'xlsx', content });
  });
});
