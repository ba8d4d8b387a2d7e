import { afterAll, expect, test } from 'vitest';
import { PARSERS } from '../../shared/uploads/parsers.ts';
import { makeTable } from '../../workers/parsers/csv/make-table.ts';
import { parseTable } from '../harness/clients/parsed-table.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';

const directory = makeTempDir('csv-dialects');
afterAll(() => directory.remove());

const read = (content: string | Uint8Array, given: object = {}) =>
  parseTable(directory.path, content, files => {
    const parameters = PARSERS.csv.parameters.parse(given);
    return makeTable({ ...files, parameters }, () => {});
  });

/** Names, types and values, the values as JSON texts. */
async function look(content: string | Uint8Array, given: object = {}) {
  const { columns, json } = await read(content, given);
  return columns.map(({ name, type, unit }, i) =>
    [`${name} ${type}${unit ? ` ${unit}` : ''}`, ...(json[i] as string[])].join(' '),
  );
}

const utf16 = (text: string) => Buffer.from(text, 'utf16le');
const PRICES = 'Straße;Preis\nÄ;1,5\nZoë;-2,25e3\n';

test('a column that is text for a few values only tells these', async () => {
  const numbers = Array.from({ length: 1_000 }, (_, i) => `${i * 10}`);
  const csv = (columns: string[][]) =>
    columns[0]?.map((_, row) => columns.map(column => column[row]).join(',')).join('\n') ?? '';
  const withOdd = (name: string, values: string[], odd: Record<number, string>) => [
    name,
    ...values.map((value, i) => odd[i] ?? value),
  ];
  const { columns } = await read(
    csv([
      withOdd('v', numbers, { 500: 'n.a.', 700: '?' }),
      withOdd('whole', numbers, {}),
      withOdd(
        'name',
        numbers.map(value => `station ${value}`),
        { 3: '7' },
      ),
      withOdd(
        'half',
        numbers,
        Object.fromEntries(numbers.slice(0, 500).map((_, i) => [i * 2, 'x'])),
      ),
      withOdd(
        'file_row_number',
        numbers.map(() => '2026-03-28'),
        { 999: '29.3.2026' },
      ),
      withOdd('id', numbers, { 0: '007' }),
    ]),
  );
  expect(columns.map(({ name, type, nearly }) => [name, type, nearly])).toEqual([
    ['v', 'text', { type: 'integer', others: 2, first: { row: 500, value: 'n.a.' } }],
    ['whole', 'integer', undefined],
    ['name', 'text', undefined],
    ['half', 'text', undefined],
    [
      'file_row_number',
      'text',
      { type: 'date', others: 1, first: { row: 999, value: '29.3.2026' } },
    ],
    ['id', 'text', { type: 'integer', others: 1, first: { row: 0, value: '007' } }],
  ]);
  const sorted = [...numbers, ...numbers.map(() => 'later'), ...numbers.map(() => 'later')];
  const mixed = await read(
    csv([
      ['v', ...sorted],
      [
        'w',
        ...withOdd(
          '',
          sorted.map(() => '1.5'),
          { 2000: '-' },
        ).slice(1),
      ],
    ]),
  );
  expect(mixed.columns.map(({ type, nearly }) => [type, nearly])).toEqual([
    ['text', undefined],
    ['text', { type: 'number', others: 1, first: { row: 2_000, value: '-' } }],
  ]);
  const asked = await read(csv([withOdd('v', numbers, { 5: 'x' })]), { types: { v: 'text' } });
  expect(asked.columns[0]?.nearly).toBeUndefined();
});

test('encodings are found by their mark, or named', async () => {
  const expected = ['Straße text "Ä" "Zoë"', 'Preis number 1.5 -2250'];
  const given = { decimal: ',' };
  expect(await look(`\ufeff${PRICES}`, given)).toEqual(expected);
  expect(await look(utf16(`\ufeff${PRICES}`), given)).toEqual(expected);
  expect(await look(utf16(`\ufeff${PRICES}`).swap16(), given)).toEqual(expected);
  expect(await look(utf16(PRICES), { ...given, encoding: 'utf-16' })).toEqual(expected);
  expect(await look(utf16(PRICES).swap16(), { ...given, encoding: 'utf-16' })).toEqual(expected);
  expect(await look(utf16('字,号\n一,1\n'), { encoding: 'utf-16' })).toEqual([
    '字 text "一"',
    '号 integer 1',
  ]);
  for (const bytes of [utf16(PRICES), utf16(PRICES).swap16()])
    await expect(read(bytes)).rejects.toMatchObject({
      problems: [{ row: 1, reason: expect.stringContaining('looks like UTF-16 without a byte') }],
      hint: expect.stringContaining('"encoding": "utf-16"'),
    });
  for (const encoding of ['latin-1', 'windows-1252'])
    expect(await look(Buffer.from(PRICES, 'latin1'), { ...given, encoding })).toEqual(expected);
  const euro = Buffer.concat([Buffer.from('a,b\n1,'), Buffer.from([0x80, 0x0a])]);
  expect(await look(euro, { encoding: 'windows-1252' })).toEqual(['a integer 1', 'b text "€"']);
  expect(await look(euro, { encoding: 'latin-1' })).toEqual(['a integer 1', 'b text "\x80"']);
  await expect(read(Buffer.from(PRICES, 'latin1'))).rejects.toMatchObject({
    problems: [{ row: 1, reason: 'there are bytes that are not UTF-8' }],
    hint: expect.stringContaining('"encoding"'),
  });
  for (const end of ['\n', '\r\n', '\r']) {
    const lines = Buffer.from(`a,b${end}${`1,x${end}`.repeat(500_000)}2,\x81${end}`, 'latin1');
    await expect(read(lines, { encoding: 'windows-1252' })).rejects.toMatchObject({
      problems: [{ row: 500_002, reason: expect.stringContaining('byte 0x81') }],
    });
  }
  await expect(read(utf16('\ufeffa\n\ud800x\n'))).rejects.toThrow('not UTF-16');
});

test('a byte order mark inside of the file is a part of a value', async () => {
  const { columns, json } = await read('\ufeffa,b\nx,1\n\ufeffy,2\n');
  expect(json).toEqual([
    ['"x"', '"\ufeffy"'],
    ['1', '2'],
  ]);
  expect([columns[0]?.max, columns[0]?.top?.at(-1)?.value]).toEqual(['\ufeffy', '\ufeffy']);
});

test('byte order marks before the first record are none of its characters', async () => {
  const expected = ['column0 number 1 3', 'column1 integer 2 4'];
  const rows = '1,2\n3.0,4\n';
  expect(await look(`\ufeff\ufeff${rows}`)).toEqual(expected);
  expect(await look(utf16(`\ufeff\ufeff${rows}`))).toEqual(expected);
  expect(await look(`x\n\ufeff${rows}`, { skip: 1 })).toEqual(expected);
  expect(await look(`x\n\ufeff# y\n\ufeff${rows}`, { skip: 1, comment: '#' })).toEqual(expected);
  expect(await look(`x\n\ufeff"a",b\n${rows}`, { skip: 1 })).toEqual([
    'a number 1 3',
    'b integer 2 4',
  ]);
  expect(await look('x\n\ufeffy\n', { skip: 1, header: false })).toEqual(['column0 text "y"']);
});

test('blank lines before a column without a name are missing values', async () => {
  for (const given of [{}, { header: false }]) {
    const { rows, json, dialect } = await read('\n\n1\n2\n', given);
    expect([rows, json, dialect?.header, dialect?.skip]).toEqual([
      ...[4, [['null', 'null', '1', '2']], false, 0],
    ]);
  }
  expect(await look('\r\n# x\r\n\r\n1\n', { comment: '#' })).toEqual(['column0 integer null 1']);
  expect(await look('\n\n1\n', { nulls: ['NA'] })).toEqual(['column0 text "" "" "1"']);
  expect(await look('\n\nx\n1\n')).toEqual(['x integer 1']);
});

test('errors in a column without a name are placed in the lines of the file', async () => {
  const given = { types: { column0: 'integer' }, nulls: ['NA'] };
  await expect(read('\n\n5\n6\n', given)).rejects.toMatchObject({
    problems: [{ row: 1 }, { row: 2 }],
  });
  await expect(read('# x\n\n5\n6\n', { ...given, comment: '#' })).rejects.toMatchObject({
    problems: [{ row: 2 }],
  });
});

test('every character of an encoding is the one that it stands for', async () => {
  const bytes = Buffer.from(Array.from({ length: 96 }, (_, i) => 0xa0 + i));
  const text = String.fromCodePoint(...bytes);
  const file = Buffer.concat([Buffer.from('a,b\nx,'), bytes, Buffer.from('\n')]);
  for (const encoding of ['latin-1', 'windows-1252'])
    expect((await look(file, { encoding }))[1]).toBe(`b text ${JSON.stringify(text)}`);
});

test('numbers with a decimal comma, and those of Fortran', async () => {
  expect(await look('a;b\n1,5;1.5\n,5;x\n-1,0D+03;2\n', { decimal: ',' })).toEqual([
    'a number 1.5 0.5 -1000',
    'b text "1.5" "x" "2"',
  ]);
  expect(await look('a,b\n"1,5",2\n', { decimal: ',', delimiter: ',' })).toEqual([
    'a number 1.5',
    'b integer 2',
  ]);
  expect(await look('a;b\n1.234,5;1\n', { decimal: ',' })).toEqual([
    'a text "1.234,5"',
    'b integer 1',
  ]);
  expect(await look('x,id\n1.0D+03,1D5\n-.5d-2,2\n')).toEqual([
    'x number 1000 -0.005',
    'id text "1D5" "2"',
  ]);
  expect(await look(`x\n${'1.5\n'.repeat(60_000)}2.0D0\n`).then(([x]) => x?.slice(-4))).toBe(
    '.5 2',
  );
});

test('decimal commas are no delimiters', async () => {
  const asText = ['column0 text "1,5" "3,5"', 'column1 text "2,5" "-4,"'];
  for (const delimiter of [';', '\t'])
    expect(await look(`1,5;2,5\n3,5;-4,\n`.replaceAll(';', delimiter))).toEqual(asText);
  expect(await look('1,5;2,5\n3,5;-4,\n', { decimal: ',' })).toEqual([
    'column0 number 1.5 3.5',
    'column1 number 2.5 -4',
  ]);
  expect(await look('Zeit, s;Druck, bar\n01.02.2020;2,5\n02.02.2020;\n')).toEqual([
    'Zeit, s text "01.02.2020" "02.02.2020"',
    'Druck, bar text "2,5" null',
  ]);
  // These commas are delimiters.
  expect(await look('n,list\n1,a;b\n2,c;d\n')).toEqual(['n integer 1 2', 'list text "a;b" "c;d"']);
  expect(await look('1,a;b\n2,c;d\n', { header: false })).toEqual([
    'column0 integer 1 2',
    'column1 text "a;b" "c;d"',
  ]);
});

test('commas in texts are no delimiters where others take all lines apart', async () => {
  expect(await look('City, State\tpop\nAustin, TX\t5\nDallas, TX\t7\n')).toEqual([
    'City, State text "Austin, TX" "Dallas, TX"',
    'pop integer 5 7',
  ]);
  for (const end of ['\n', ''])
    expect(await look(`Berlin, Mitte\t5\nParis, Nord\t7${end}`)).toEqual([
      'column0 text "Berlin, Mitte" "Paris, Nord"',
      'column1 integer 5 7',
    ]);
  expect(await look('Name, Vorname;Alter\nMüller, Hans;5\nCher;70\n')).toEqual([
    'Name, Vorname text "Müller, Hans" "Cher"',
    'Alter integer 5 70',
  ]);
  expect(await look('Zeit, s;Druck\n1;2\n3;4\n')).toEqual([
    'Zeit, s integer 1 3',
    'Druck integer 2 4',
  ]);
  // These commas are delimiters.
  expect(await look('n,\tx\n1,\t2\n3,\t4\n')).toEqual(['n integer 1 3', 'x text "\\t2" "\\t4"']);
  expect(await look('a,b\t\nx,y\t\nz,w\t\n')).toEqual(['a text "x" "z"', 'b text "y\\t" "w\\t"']);
  expect(await look('"a\tb",n\n"c\td",1\n')).toEqual(['a\tb text "c\\td"', 'n integer 1']);
  expect(await look('1, a;b\n2, c;d\n')).toEqual([
    'column0 integer 1 2',
    'column1 text " a;b" " c;d"',
  ]);
});

test('a delimiter that is rarer than the commas does not keep commas in texts', async () => {
  expect(
    await look('name, score, tags (a|b), note\nann, 5, x|y, hi\nbob, 7, z|w, ho\n'),
  ).toHaveLength(4);
  expect(await look('Name, Role, Team; Lead\nAnn, admin, Core; Bo\n')).toEqual([
    'Name text "Ann"',
    'Role text " admin"',
    'Team; Lead text " Core; Bo"',
  ]);
  // These commas take no rows apart.
  expect(await look('Name, Vorname;Wert, EUR\nMüller, Hans;5\nMeier, Eva;6\n')).toEqual([
    'Name, Vorname text "Müller, Hans" "Meier, Eva"',
    'Wert, EUR integer 5 6',
  ]);
});

test('tabs and commas are weighed by records as they are read', async () => {
  const begin = 'City, State\tpop\nAustin, TX\t5\n';
  const found = async (rest: string, given: object = {}) =>
    (await read(begin + rest, given)).json.map(column => column.at(-1));
  const last = ['"Dallas, TX"', '7'];
  expect(await found('# by hand, again\nDallas, TX\t7\n', { comment: '#' })).toEqual(last);
  expect(await found('#,\t"\nDallas, TX\t7\n', { comment: '#' })).toEqual(last);
  expect(await look('Name, First;x\n# c\nMüller, Hans;5\n', { comment: '#' })).toEqual([
    'Name, First text "Müller, Hans"',
    'x integer 5',
  ]);
  expect(await look('x y\n# c\n1 2\n', { comment: '#' })).toEqual(['x integer 1', 'y integer 2']);
  expect(await look('City, State\tpop\nAustin, TX\t5\t\nDallas, TX\t7\t\n')).toEqual([
    'City, State text "Austin, TX" "Dallas, TX"',
    'pop integer 5 7',
  ]);
  expect(await found('Dallas, TX\t7\n8\n', { tolerance: 1 })).toEqual(last);
  expect(await found('Washington,\t7\n')).toEqual(['"Washington,"', '7']);
  expect(await found('Dallas, TX\t"one\ntwo"\n')).toEqual(['"Dallas, TX"', '"one\\ntwo"']);
  // These commas are delimiters.
  expect(await look('n,\tx\n1,\t2\n3,4\n5,\t6\n', { tolerance: 1 })).toHaveLength(2);
  expect(await look('a\tb,n\n1,2\n3,4\n', { tolerance: 9 })).toEqual([
    'a\tb integer 1 3',
    'n integer 2 4',
  ]);
});

test('a first row without a text is data', async () => {
  expect(await look('2026-01-01,1.5\n2026-01-01T01:00:00,1.6\n2026-01-01T02:00:00,1.7\n')).toEqual([
    'column0 text "2026-01-01" "2026-01-01T01:00:00" "2026-01-01T02:00:00"',
    'column1 number 1.5 1.6 1.7',
  ]);
  expect(await look('0,1\n2026-01-02,2\n')).toEqual([
    'column0 text "0" "2026-01-02"',
    'column1 integer 1 2',
  ]);
  // A column for each day.
  expect(await look('Country,2026-01-01,2026-01-02\nTonga,1,2\nFiji,3,4\n')).toEqual([
    'Country text "Tonga" "Fiji"',
    '2026-01-01 integer 1 3',
    '2026-01-02 integer 2 4',
  ]);
  // A name and a missing one, over dates and counts.
  expect(await look('day,\n2026-01-01,1\n2026-01-02,2\n')).toEqual([
    'day date "2026-01-01" "2026-01-02"',
    'column1 integer 1 2',
  ]);
});

test('a first row that may be data is data', async () => {
  for (const rows of [
    // Over columns of numbers, booleans and times.
    ['nan 1.0', '2.0 3.0', '4.0 5.0'],
    ...[
      'NA',
      '--',
      '-inf',
      '<0.01',
      '<LOD',
      '5%',
      '#N/A',
      '#REF!',
      '(null)',
      '-nan(ind)',
      '$5',
      '\\N',
    ].map(text => [text, '1', '2']),
    ['24:00:00', '10:00:00', '11:00:00'],
    ['2020-01-01T00:00:00.1234567', '2020-01-01T00:00:00', '2020-01-01T00:00:01'],
    ['True', 'true', 'false'],
    ['x,NaN', 'y,1', 'z,2'],
    // Beside a value of its column's type, a word such as that of an overload is no name.
    ['2023-01-01T00:00:00,OL,20.1', '2023-01-01T00:00:01,1.5,20.2', '2023-01-01T00:00:02,1.6,20.3'],
    ['1,2,3,4,5,6,7,x', '1,2,3,4,5,6,7,8', '2,3,4,5,6,7,8,9'],
    ['I/O Timeout,20', '1.5,20.5', '1.6,21'],
    ['10:00:00,Bad', '10:00:01,5', '10:00:02,6'],
    ['OL,2019', '1.5,2020', '1.6,2021'],
    ['OL,2019,2019', '1.5,2020,2020', '1.6,2021,2021'],
    ['off,false', '1,true', '2,false'],
    // Over texts.
    ['12,foo', 'A3,bar', 'A4,baz'],
    ['00123,00456', '00789,00111', '00222,00333'],
    ['yes', 'no', 'yes'],
    ['"",x', 'y,z', 'v,w'],
    ['a,b,a', 'x,y,z', 'x,y,z'],
    ['5%', '6%', '7%'],
    ['2020-01-01,x', 'June,y', 'July,z'],
  ]) {
    const { rows: found, dialect, columns } = await read(`${rows.join('\n')}\n`);
    const names = columns.map(({ name }) => name);
    expect([rows, found, dialect?.header]).toEqual([rows, 3, false]);
    expect(names).toEqual(names.map((_, i) => `column${i}`));
  }
  const kept = 'nan 1.0\n2.0 3.0\n';
  expect(await look(kept)).toEqual(['column0 text "nan" "2.0"', 'column1 number 1 3']);
});

test('usual names make a header', async () => {
  for (const names of [
    'T (K),%,x',
    '%,a,b',
    '°C',
    '(s)',
    '#',
    '1st,2nd,3rd',
    '_id,2026-01-01,2026-01-02',
    'country,2019,2020',
    'H2O,Δt,字',
    'Na,NaCl,K',
    '@timestamp',
    '∆T',
    '-log10(p)',
  ]) {
    const row = names.split(',').map((_, i) => i + 1);
    const { rows, dialect, columns } = await read(`${names}\n${row}\n`);
    expect([names, rows, dialect?.header]).toEqual([names, 1, true]);
    expect(columns.map(({ name }) => name).join()).toBe(names);
  }
  for (const names of ['Name,2nd name,% of all', 'a,b,']) {
    const { rows, dialect } = await read(`${names}\nx,y,${names.endsWith(',') ? '' : 'z'}\n`);
    expect([names, rows, dialect?.header]).toEqual([names, 1, true]);
  }
});

test('several texts of their own above values are names, whatever they begin with', async () => {
  for (const [names, row] of [
    ['Gene,0h,6h,24h', 'TP53,1.2,3.4,5.6'],
    ['gene,1A,1B,2A', 'x,1,2,3'],
    ['compound,0.1 uM,1 uM,10 uM', 'x,1,2,3'],
    ['12C,13C,14N', '98.9,1.1,99.6'],
    ['Region,0-4,5-9,10-14', 'North,100,200,300'],
    ['Area,2019/20,2020/21', 'North,1.5,2.5'],
    ['Country,1/22/20,1/23/20', 'Chile,0,1'],
    ['Land,01.02.2020,02.02.2020', 'Hessen,3,4'],
    ['Probe,1.Messung,2.Messung', 'P1,0.5,0.6'],
    // As the World Bank names years and months; where values are missing, all columns are texts.
    ['Country,2019 [YR2019],2020 [YR2020]', 'Aruba,..,..'],
    ['Country,2019M01 [2019M01],2019M02 [2019M02]', 'Aruba,..,..'],
    // An index, and most of texts.
    [',cell_type,condition', 'AAAC,T cell,ctrl'],
    ['name,role,5-point scale', 'Ann,cook,good'],
  ] as const) {
    const { rows, dialect } = await read(`${names}\n${row}\n`);
    expect([names, rows, dialect?.header]).toEqual([names, 1, true]);
  }
  for (const rows of [
    ['"1,234.5","2,345.6"', '123.4,234.5', '1,2'],
    ['24:00:00,25:00:00', '10:00:00,11:00:00', '12:00:00,13:00:00'],
    ['x,ND', 'y,1', 'z,2'],
    ['BDL,3', '1,2', '2,3'],
    ['0h,0h', '1,2', '3,4'],
    ['x,5 [mg]', 'y,6 [mg]', 'z,7 [mg]'],
    ['x,2019 [YR2019]', 'y,2019 [YR2019]', 'z,2020 [YR2020]'],
    ['Region,0-4,7', 'North,100,200', 'South,100,300'],
    [',T cell,ctrl', 'AAAC,B cell,case', 'AAAC,NK cell,other'],
  ]) {
    const { rows: found, dialect } = await read(`${rows.join('\n')}\n`);
    expect([rows, found, dialect?.header]).toEqual([rows, 3, false]);
  }
});

test('a header of texts over texts is said to be a guess', async () => {
  const genes = 'BRCA1\nTP53\nEGFR\nMYC\nKRAS\n';
  expect((await read(genes)).dialect).toMatchObject({ header: true, headerGuessed: true });
  for (const [csv, given, rows] of [
    [genes, { header: true }, 4],
    [genes, { header: false }, 5],
    ['gene,n\nTP53,1\n', {}, 1],
    ['x\ny\nx\n', {}, 3],
  ] as const) {
    const { rows: found, dialect } = await read(csv, given);
    expect([csv, found, dialect?.headerGuessed]).toEqual([csv, rows, undefined]);
  }
});

test('names that types have make a header of the record that has them', async () => {
  const csv = '0h,6\n1,2\n';
  expect(await look(csv, { types: { '0h': 'number' } })).toEqual(['0h number 1', '6 integer 2']);
});

test('what precedes the table: sep=, lines to skip, comments, blank lines', async () => {
  const expected = ['a integer 1', 'b text "x,y"'];
  expect(await look('sep=;\r\na;b\r\n1;x,y\r\n')).toEqual(expected);
  expect(await look(utf16('\ufeffsep=|\na|b\n1|x,y\n'))).toEqual(expected);
  expect(await look('Station 7, north\n\n"a";b\n1;x,y\n', { skip: 2 })).toEqual(expected);
  expect(await look('# by me\n\n#, too\na;b\n#1;"\n1;x,y\n# the end', { comment: '#' })).toEqual(
    expected,
  );
  expect(await look('a;b\n1;"x\n#,y"\n', { comment: '#' })).toEqual([
    'a integer 1',
    'b text "x\\n#,y"',
  ]);
  const { dialect } = await read('one\r\n\r\na;b\r\n1;2\n', { skip: 1 });
  expect(dialect).toEqual({
    encoding: 'utf-8',
    delimiter: ';',
    quote: '"',
    decimal: '.',
    header: true,
    lineBreak: 'mixed',
    comment: null,
    skip: 2,
    units: false,
    nulls: [''],
  });
  await expect(read('x\ny\n', { skip: 2 })).rejects.toThrow('no record');
  // Lines are counted as an editor does.
  await expect(read('sep=,\n# a\na,b\n1,2\n# b\n1\n', { comment: '#' })).rejects.toMatchObject({
    problems: [{ row: 6, reason: 'expected 2 values, found 1' }],
  });
});

test('a line of spaces is a blank line where values are between other delimiters', async () => {
  const expected = ['a integer 1 3', 'b number 2.5 4'];
  for (const csv of [
    'a,b\n \n1,2.5\n\t \n3,4\n  ',
    'a;b\r\n1;2.5\r\n   \r\n3;4\r\n\t\r\n',
    'a,b\n1,2.5\n3,4\n\t\n',
  ])
    expect(await look(csv)).toEqual(expected);
  expect(await look('a;b\n  \n1,5;2,5\n \n', { decimal: ',' })).toEqual([
    'a number 1.5',
    'b number 2.5',
  ]);
  expect((await read('1,5;2,5\n  \n3,5;4,5\n')).dialect?.delimiter).toBe(';');
  expect(await look('a,b\n  \ns,m\n1,2\n', { units: true })).toEqual([
    'a integer s 1',
    'b integer m 2',
  ]);
  // What is left out beside it is counted without it, and told by its line.
  const { rows, skipped } = await read('a,b\n1,2\n \n3\n4,5\n', { tolerance: 1 });
  expect([rows, skipped]).toMatchObject([2, { count: 1, problems: [{ row: 4 }] }]);
  expect(await look('1 2\n  \n3 4\n')).toEqual(['column0 integer 1 3', 'column1 integer 2 4']);
  // It is a value of a single column, and of one between tabs.
  expect(await look('a\n  \nx\n')).toEqual(['a text "  " "x"']);
  await expect(read('a\tb\n1\t2\n  \n')).rejects.toThrow('expected 2 values, found 1');
});

test('a column may be called like what every object has', async () => {
  const csv = 'race,constructor,__proto__\n1,Lotus,x\n';
  expect(await look(csv, { types: { race: 'number' } })).toEqual([
    'race number 1',
    'constructor text "Lotus"',
    '__proto__ text "x"',
  ]);
});

test('a long unit is cut between characters', async () => {
  const unit = `${'x'.repeat(99)}😀`;
  expect(await look(`a\n${unit}\n1\n`, { units: true })).toEqual([`a integer ${unit} 1`]);
});

test('a row of units', async () => {
  const csv = 't,"v\n",x\ns,"m/s",\n1,2.5,a\n2,,b\n';
  const expected = ['t integer s 1 2', 'v number m/s 2.5 null', 'x text "a" "b"'];
  expect(await look(csv, { units: true })).toEqual(expected);
  await expect(read('t,v\n', { units: true })).rejects.toThrow('no second row');
  await expect(
    read('t,v\ns,m\n1,2\n\n3,x\n', { units: true, types: { v: 'number' } }),
  ).rejects.toMatchObject({ problems: [{ row: 5, column: 'v' }] });
  expect(PARSERS.csv.parameters.safeParse({ units: true, header: false }).success).toBe(false);
});

test('blank lines are no row of units', async () => {
  expect(await look('a\n\n\nm\n1\n\n2\n', { units: true })).toEqual(['a integer m 1 null 2']);
  await expect(read('a\n\n', { units: true })).rejects.toThrow('no second row');
  await expect(
    read('a\n\nm\n1\nx\n', { units: true, types: { a: 'integer' } }),
  ).rejects.toMatchObject({ problems: [{ row: 5, column: 'a' }] });
});

test('an empty text in quotes is a text where its column is one, and missing elsewhere', async () => {
  const csv = 'n,s,d,e\n1,"",2020-01-01,""\n"",,"",\n3,a,2020-01-03,\n';
  const expected = [
    'n integer 1 null 3',
    's text "" null "a"',
    'd date "2020-01-01" null "2020-01-03"',
    'e text "" null null',
  ];
  expect(await look(csv)).toEqual(expected);
  expect(await look(csv, { types: { n: 'integer' } })).toEqual(expected);
  expect(await look(csv.replace('n,s,d,e\n', ''))).toEqual(
    expected.map((column, i) => column.replace(/^\w/, `column${i}`)),
  );
  expect((await look(csv, { text: true }))[0]).toBe('n text "1" "" "3"');
  // Named as missing it is, in quotes too.
  expect((await look(csv, { nulls: [''] }))[1]).toBe('s text null null "a"');
  // Where it is the only column, many write nothing else for a missing value.
  expect(await look('s\na\n""\n')).toEqual(['s text "a" null']);
  // An index without a name, as R writes it.
  expect((await look('"","s","t"\n"i","","a"\n"j","x","b"\n'))[1]).toBe('s text "" "x"');
  await expect(read(csv, { types: { s: 'integer' } })).rejects.toMatchObject({
    count: 1,
    problems: [{ row: 4, column: 's', reason: expect.stringContaining('"a" is not') }],
  });
  const rows = Array.from({ length: 100 }, (_, i) => (i % 3 ? `${i},` : '"",'));
  const { columns } = await read(`n,m\n${rows.join('\n')}\nx,y\n`);
  expect(columns[0]?.nearly).toEqual({
    type: 'integer',
    others: 1,
    first: { row: 100, value: 'x' },
  });
});

test('times with and without a zone in one column are said to be these', async () => {
  const times = 't\n2020-01-01T00:00:00\n2020-01-01T00:00:00+01:00\nx\n';
  await expect(read(times, { types: { t: 'timestamp' } })).rejects.toMatchObject({
    problems: [
      { row: 3, reason: expect.stringContaining('"2020-01-01T00:00:00+01:00" has a zone: ') },
      { row: 4, reason: expect.stringContaining('"x" is not a date and time') },
    ],
  });
});

test('texts that mean a missing value', async () => {
  const csv = 'a,b,c\n1,,NA\nNA,x,-999\n,NA,3\n';
  expect(await look(csv)).toEqual([
    'a text "1" "NA" null',
    'b text null "x" "NA"',
    'c text "NA" "-999" "3"',
  ]);
  expect(await look(csv, { nulls: ['', 'NA', '-999'] })).toEqual([
    'a integer 1 null null',
    'b text null "x" null',
    'c integer null null 3',
  ]);
  // The list replaces the empty text.
  expect((await look(csv, { nulls: ['NA'] }))[1]).toBe('b text "" "x" null');
  expect((await look('a,b\n1,\n2,""\n3,""""\n', { nulls: [] }))[1]).toBe('b text "" "" "\\""');
  for (const nulls of [['NA'], []]) {
    expect(await look('x\n1\n\n2\n', { nulls })).toEqual(['x text "1" "" "2"']);
    expect(await look('x\na\nb\n\n', { nulls })).toEqual(['x text "a" "b" ""']);
  }
  expect(await look('x\n1\n\n2\n', { nulls: ['', 'NA'] })).toEqual(['x integer 1 null 2']);
  await expect(read('a b\n1 2\n', { delimiter: ' ', nulls: ['not there'] })).rejects.toThrow(
    'has the delimiter',
  );
});

test('runs of spaces, named or found', async () => {
  const expected = ['x number 1.5 -10', 'y number 2 2000'];
  const fixed = '     x         y\n   1.5         2\n -10.0   2.0D+03   \n';
  expect(await look(fixed)).toEqual(expected);
  expect(await look(fixed, { delimiter: ' ' })).toEqual(expected);
  expect(await look('x y\n1 2')).toEqual(['x integer 1', 'y integer 2']);
  expect(await look(' a  "b  c"  \n  "x ""  y"    1\n', { delimiter: ' ' })).toEqual([
    'a text "x \\"  y"',
    'b  c integer 1',
  ]);
  // A number that is none is one of a row of numbers.
  expect(await look('x y\n1.5 nan\n-inf 2\n3 -Infinity\n')).toEqual([
    'x text "1.5" "-inf" "3"',
    'y text "nan" "2" "-Infinity"',
  ]);
  expect(await look('1 nan\n2 3.5\n', { nulls: ['nan'] })).toEqual([
    'column0 integer 1 2',
    'column1 number null 3.5',
  ]);
  // The header of numpy.savetxt().
  for (const [sign, given] of [
    ['# ', {}],
    ['  %   ', {}],
    ['# ', { delimiter: ' ' }],
  ] as const)
    expect(
      await look(`${sign}t  x\n1.0 nan\n2.0 nan\n`, { ...given, types: { t: 'number' } }),
    ).toEqual(['t number 1 2', 'x text "nan" "nan"']);
  expect(await look('# x\n1 2\n')).toEqual(['# integer 1', 'x integer 2']);
  expect(await look('# of items\n5\n')).toEqual(['# of items integer 5']);
  expect(await look('# t x\n1 2\n3 4\n', { comment: '#' })).toEqual([
    'column0 integer 1 3',
    'column1 integer 2 4',
  ]);
  await expect(read('# t x\n1 2\n', { delimiter: ' ', header: false })).rejects.toThrow('expected');
  // These are texts, not columns.
  expect(await look('when\n2020-01-01 10:00\n')).toEqual(['when timestamp "2020-01-01T10:00:00"']);
  expect(await look('two words\nand more\n')).toEqual(['two words text "and more"']);
});

test('mixed line ends and trailing delimiters', async () => {
  const expected = ['a integer 1 3', 'b text "x" "y\\r\\nz"'];
  expect(await look('a,b\r\n1,x\n\n3,"y\r\nz"\r\n')).toEqual(expected);
  expect(await look('a,b\n1,x,\r\n3,"y\r\nz",')).toEqual(expected);
  expect(await look('a,b,\n1,x,\n3,"y\r\nz",\n')).toEqual(expected);
  expect(await look('a,b,\n1,x,\n3,"y\r\nz",4\n')).toEqual([...expected, 'column2 integer null 4']);
  await expect(read('a,b\n1,x,,\n')).rejects.toThrow('expected 2 values, found 4');
});

test('malformed rows are left out and listed, as many as are tolerated', async () => {
  const csv = 'a,b\n1,2\n1,2,3\n"4"x,5\n6,7\n8\n';
  const { json, skipped } = await read(csv, { tolerance: 3 });
  expect(json).toEqual([
    ['1', '6'],
    ['2', '7'],
  ]);
  expect(skipped).toEqual({
    count: 3,
    problems: [
      { row: 3, reason: 'expected 2 values, found 3' },
      { row: 4, reason: 'there is text after the end of a quoted value' },
      { row: 6, reason: 'expected 2 values, found 1' },
    ],
  });
  await expect(read(csv, { tolerance: 2 })).rejects.toMatchObject({ count: 3 });
  expect((await read('a,b\n1,2\n', { tolerance: 2 })).skipped).toBeUndefined();
  const many = await read(`a,b\n${'1\n'.repeat(5_000)}1,2\n`, { tolerance: 5_000 });
  expect([many.rows, many.skipped?.count, many.skipped?.problems.length]).toEqual([1, 5_000, 100]);
  // What may hide good rows is not tolerated: a quote that takes in lines, a header that is none.
  for (const bad of [
    'a,b\n1,"2\n3,4\n5,6\n',
    'a,b\n1,"2\n3,4\n5,"6\n',
    'a,"b"c\n1,2\n',
    'a,b\n1,\xff2\0\n',
  ])
    await expect(read(bad, { tolerance: 10 })).rejects.toMatchObject({ name: 'TableError' });
});

test('a value that goes on after its quotes has a hint of the delimiter', async () => {
  // As R's write.table() writes a table.
  await expect(read('"a" "b"\n"1" 1 2\n')).rejects.toMatchObject({
    problems: [{ row: 1, reason: 'there is text after the end of a quoted value' }, { row: 2 }],
    hint: expect.stringContaining('"delimiter"'),
  });
});

test('what is irregular only in its later megabytes is read as it would be in the first', async () => {
  // A table is begun after 4 MiB that look regular.
  const rows = 45_000;
  const filler = 'of a row'.repeat(13);
  const begin = `a,b\n${Array.from({ length: rows }, (_, n) => `${n},${filler}\n`).join('')}`;
  const regular = await read(begin);
  expect([regular.rows, regular.json[0]?.at(-1)]).toEqual([rows, String(rows - 1)]);
  for (const [end, given] of [
    ['7,x\r\n', {}],
    ['7,x,\n', {}],
    ['1,2,3\n7,x\n', { tolerance: 1 }],
    ['# of another kind\n7,x\n', { comment: '#' }],
  ] as const) {
    const { rows: found, json, columns } = await read(begin + end, given);
    expect(json.map(column => column.at(-1))).toEqual(['7', '"x"']);
    expect([found, columns.map(({ type }) => type)]).toEqual([rows + 1, ['integer', 'text']]);
  }
  // DuckDB passes over a blank line, which is a value of a single column here.
  const { json } = await read(`a\n${`${filler}\n`.repeat(rows)}\nx\n`, { nulls: ['NA'] });
  expect(json[0]?.slice(rows)).toEqual(['""', '"x"']);
  const line = rows + 2;
  await expect(read(`${begin}8,"x\n`)).rejects.toMatchObject({
    problems: [{ row: line, reason: 'a quote is never closed' }],
  });
  await expect(read(`${begin}8.5,x\n`, { types: { a: 'integer' } })).rejects.toMatchObject({
    problems: [{ row: line, column: 'a' }],
  });
});

test('values of lines that look like rows', async () => {
  const note = (n: number) =>
    Array.from(
      { length: 8 },
      (_, k) => `2020-01-01 10:00:0${k},INFO start of step ${k} of run ${n}`,
    );
  const check = async (rows: number, first: number, lineBreak: string) => {
    const texts = Array.from({ length: rows }, (_, n) =>
      n < first ? 'of one line'.padEnd(90) : note(n).join(lineBreak),
    );
    const { json } = await read(`id,note\n${texts.map((text, n) => `${n},"${text}"\n`).join('')}`);
    expect(json[0]?.every((id, n) => id === String(n))).toBe(true);
    expect(json[1]?.findIndex((text, n) => text !== JSON.stringify(texts[n]))).toBe(-1);
    expect(json[1]?.length).toBe(rows);
  };
  for (const lineBreak of ['\n', '\r\n']) await check(5_000, 0, lineBreak);
  // A table is begun after 4 MiB.
  await check(50_000, 45_000, '\n');
});

test('a thousand columns', async () => {
  const names = Array.from({ length: 1_000 }, (_, i) => `c${i}`);
  const rows = Array.from({ length: 3 }, (_, r) => names.map((_, i) => (i % 10 ? r + i : `t${i}`)));
  const { columns, json } = await read(
    `${[names, ...rows].map(row => row.join(';')).join('\n')}\n`,
  );
  expect(columns.map(({ name, type }) => `${name} ${type}`)).toEqual(
    names.map((name, i) => `${name} ${i % 10 ? 'integer' : 'text'}`),
  );
  expect(json).toEqual(names.map((_, i) => rows.map(row => JSON.stringify(row[i]))));
});
