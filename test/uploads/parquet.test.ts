import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { parseFile } from '../harness/clients/parsed-file.ts';
import { missingReaders, runReader } from '../harness/files/format-readers.ts';
import { damage, expectBounded, parseConfined } from '../harness/files/hostile-files.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { describeUnless } from '../harness/skip.ts';

const directory = makeTempDir('parquet');
afterAll(() => directory.remove());

const read = async (content: Uint8Array) =>
  (await parseFile(directory.path, { parser: 'parquet', content }))[''];

const IMPORTS = `
import datetime as d, decimal, json, random, sys
import pyarrow as pa, pyarrow.parquet as pq
path = sys.argv[1]
`;

/** Writes a file by pyarrow: a script with \`path\`, which prints JSON. */
function write<T>(script: string): { content: Buffer; said: T } {
  const path = join(directory.path, 'written.parquet');
  const said = runReader<T>(`${IMPORTS}${script}`, path);
  return { content: readFileSync(path), said };
}

/** A table by its columns, an expression of Python. */
const writeColumns = (columns: string, options = '') =>
  write(`pq.write_table(pa.table(${columns}), path${options})\nprint('null')`).content;

describeUnless(missingReaders, 'Parquet files of pyarrow', () => {
  test('every value of every type is what pyarrow reads', async () => {
    // pyarrow reads the file again and prints each value as the API answers it.
    const { content, said } = write<Record<string, unknown[]>>(`
r = random.Random(int('${process.env.FORMAT_SEED ?? 7}'))
many = lambda one: [None if r.random() < .1 else one() for _ in range(2000)]
ints = lambda bits: many(lambda: r.choice([r.randint(-2**(bits - 1), 2**(bits - 1) - 1), r.randint(-3, 3), -2**(bits - 1), 2**(bits - 1) - 1]))
floats = lambda: many(lambda: r.choice([r.uniform(-1, 1) * 10 ** r.randint(-300, 300), float('nan'), float('inf'), -float('inf'), -0.0, 0.1]))
text = lambda: ''.join(chr(r.choice([34, 44, 10, 92, 228, 0x20ac, 0x1f600, 65])) for _ in range(r.randint(0, 9)))
micros = lambda: r.choice([r.randint(-62135596800000000, 253402300799999999), -62135596800000000, 253402300799999999])
table = pa.table({
  'i8 integer': pa.array(ints(8), pa.int8()), 'i16 integer': pa.array(ints(16), pa.int16()), 'i32 integer': pa.array(ints(32), pa.int32()),
  'i64 integer exact': pa.array(ints(64), pa.int64()),
  'u8 integer': pa.array(many(lambda: r.randint(0, 255)), pa.uint8()), 'u32 integer': pa.array(many(lambda: r.randint(0, 2**32 - 1)), pa.uint32()),
  'u64 integer exact': pa.array(many(lambda: r.randint(0, 2**63 - 1)), pa.uint64()), 'u64t text': pa.array(many(lambda: r.randint(0, 2**64 - 1)), pa.uint64()),
  'f16 number': pa.array(many(lambda: r.uniform(-9, 9)), pa.float16()),
  'f32 number': pa.array(many(lambda: r.choice([r.uniform(-9, 9), float('nan'), 1e30])), pa.float32()), 'f64 number': pa.array(floats(), pa.float64()),
  'd9 number': pa.array(many(lambda: decimal.Decimal(r.randint(-10**9, 10**9)).scaleb(-2)), pa.decimal128(12, 2)),
  'd30 text': pa.array(many(lambda: decimal.Decimal(r.randint(10**29, 10**30 - 1)).scaleb(-9)), pa.decimal128(38, 9)),
  'd25 text': pa.array(many(lambda: decimal.Decimal(r.randint(1, 10**30)).scaleb(-25)), pa.decimal128(38, 25)),
  'd0 integer': pa.array(many(lambda: decimal.Decimal(r.randint(-99, 99))), pa.decimal128(30, 0)),
  'b boolean': pa.array(many(lambda: r.random() < .5)), 's text': pa.array(many(text)), 'ls text': pa.array(many(text), pa.large_string()),
  'dict text': pa.array(many(lambda: r.choice('abc'))).dictionary_encode(), 'bytes text': pa.array(many(lambda: text().encode())),
  'date date': pa.array(many(lambda: d.date.fromordinal(r.randint(1, 3652059)))),
  't32 time': pa.array(many(lambda: r.randint(0, 86399999)), pa.time32('ms')), 't64 time': pa.array(many(lambda: r.randint(0, 86399999999)), pa.time64('us')),
  't64_ns time': pa.array(many(lambda: r.randint(0, 86399999999) * 1000), pa.time64('ns')),
  'ts_s timestamp': pa.array(many(lambda: micros() // 1000000), pa.timestamp('s')), 'ts_us timestamp': pa.array(many(micros), pa.timestamp('us')),
  'ts_ns timestamp': pa.array(many(lambda: r.randint(-9 * 10**15, 9 * 10**15) * 1000), pa.timestamp('ns')),
  'tz timestamp': pa.array(many(lambda: micros() // 2), pa.timestamp('us', 'Europe/Berlin')), 'tz_ns timestamp': pa.array(many(lambda: r.randint(-9 * 10**15, 9 * 10**15) * 1000), pa.timestamp('ns', 'UTC')),
  'list text': pa.array(many(lambda: [r.randint(0, 9) for _ in range(r.randint(0, 3))]), pa.list_(pa.int32())), 'nothing integer': pa.array([None] * 2000, pa.int32()),
})
pq.write_table(table, path, compression=r.choice(['zstd', 'gzip', 'snappy', 'brotli', 'none']), row_group_size=r.choice([300, 5000]), version='2.6')
def time(t): return str(t)[:8] + (str(t)[8:].rstrip('0') if '.' in str(t) else '')
def stamp(v):
  s = v.replace(tzinfo=None).isoformat()
  return (s.rstrip('0') if '.' in s else s) + ('Z' if v.tzinfo else '')
def say(name, v):
  if v is None: return None
  kind = name.split(' ')[1]
  if name.endswith('exact'): return str(v)
  if name.startswith('list'): return json.dumps(v, separators=(',', ':'))
  if kind == 'timestamp': return stamp(v)
  if kind == 'time': return time(v)
  if kind == 'date': return v.isoformat()
  if kind == 'integer': return int(v)
  if isinstance(v, bytes): return v.decode()
  if kind == 'text': return str(v)
  if kind == 'number':
    f = float(v)
    return 'NaN' if f != f else ('-Infinity' if f < 0 else 'Infinity') if f - f != 0 else f
  return v
back = pq.read_table(path, coerce_int96_timestamp_unit='us')
for name in back.column_names:
  if pa.types.is_timestamp(back.schema.field(name).type): back = back.set_column(back.column_names.index(name), name, back[name].cast(pa.timestamp('us', 'UTC' if back.schema.field(name).type.tz else None)))
print(json.dumps({name: [say(name, v) for v in back[name].to_pylist()] for name in back.column_names}))
`);
    const { json = {}, rows } = (await read(content)) ?? {};
    expect(rows).toBe(2_000);
    const columns = Object.keys(said);
    const found = Object.entries(json).map(([name, cells]) => [name, cells] as const);
    expect(found.map(([name]) => name)).toEqual(
      columns.map(name => `${name} ${name.split(' ')[1]}`),
    );
    for (const [i, [name, cells]] of found.entries())
      expect({ [name]: cells.map(cell => JSON.parse(cell) as unknown) }).toEqual({
        [name]: said[columns[i] as string],
      });
  });

  test('a decimal that no double holds makes its column one of texts', async () => {
    // The nearest doubles of all but the last are too large for the type.
    for (const [digits, type] of [
      ['9999999999999999.99', 'pa.decimal128(18, 2)'],
      ['-9999999999999999.99', 'pa.decimal128(18, 2)'],
      ['999999999999999.9999', 'pa.decimal128(19, 4)'],
      ['0.12345678901234567', 'pa.decimal128(18, 17)'],
    ] as const) {
      const column = `pa.array([decimal.Decimal('1.5'), None, decimal.Decimal('${digits}')], ${type})`;
      const table = await read(writeColumns(`{'c': ${column}}`));
      expect(table?.json['c text']?.slice(1)).toEqual(['null', `"${digits}"`]);
    }
    const exact = "{'c': pa.array([decimal.Decimal('0.99'), None], pa.decimal128(18, 2))}";
    expect((await read(writeColumns(exact)))?.json).toEqual({ 'c number': ['0.99', 'null'] });
  });

  const writeNames = (...names: string[]) =>
    write(`
names = json.loads(${JSON.stringify(JSON.stringify(names))})
pq.write_table(pa.Table.from_arrays([pa.array([i]) for i in range(len(names))], names=names), path)
print('null')`).content;

  test('names are kept, and made unique', async () => {
    expect((await read(writeNames('a', 'A', '', 'A_1', 'b ', 'b')))?.json).toEqual({
      'a integer': ['0'],
      'A_2 integer': ['1'],
      'column2 integer': ['2'],
      'A_1 integer': ['3'],
      'b_1 integer': ['4'],
      'b integer': ['5'],
    });
  });

  test('a name that no table has is an error', async () => {
    await expect(read(writeNames('a', 'b\0'))).rejects.toThrow(
      'the name of column 2 has a NUL character',
    );
  });

  test('what a table does not hold is an error with its place', async () => {
    for (const [column, problem] of [
      ["pa.array(['x', 'a\\0b'])", { row: 2, reason: expect.stringContaining('NUL') }],
      ["pa.array([b'x', b'\\xff'])", { row: 2, reason: expect.stringContaining('no UTF-8') }],
      ["pa.array(['x', 'y' * 2000001])", { row: 2, reason: expect.stringContaining('longer') }],
      ['pa.array([[1.5], [float("nan")]])', { row: 2, reason: expect.stringContaining('NaN') }],
      [
        "pa.array([None, [decimal.Decimal('.1')]], pa.list_(pa.decimal128(38, 38)))",
        { row: 2, reason: expect.stringContaining('no JSON') },
      ],
      [
        "pa.array([1000, 1], pa.timestamp('ns'))",
        { row: 2, reason: expect.stringContaining('nanos') },
      ],
      [
        "pa.array([1000, 1], pa.timestamp('ns', 'UTC'))",
        { row: 2, reason: expect.stringContaining('nanos') },
      ],
      [
        "pa.array([1000, 1], pa.time64('ns'))",
        { row: 2, reason: expect.stringContaining('nanos') },
      ],
      [
        "pa.array([0, 86400000000], pa.time64('us'))",
        { row: 2, reason: expect.stringContaining('no time of day') },
      ],
      ["pa.array([-1], pa.time64('us'))", { row: 1, reason: expect.stringContaining('of day') }],
      [
        "pa.array([86400000], pa.time32('ms'))",
        { row: 1, reason: expect.stringContaining('no time of day') },
      ],
      [
        "pa.array([0, None, 86400000000000], pa.time64('ns'))",
        { row: 3, reason: expect.stringContaining('no time of day') },
      ],
      [
        "pa.array([2**63 - 8], pa.time64('us'))",
        { row: 1, reason: expect.stringContaining('no time of day') },
      ],
      [
        "pa.array([1, 253402300800], pa.timestamp('s'))",
        { row: 2, reason: expect.stringContaining('9999') },
      ],
      [
        'pa.array([-719163, 1], pa.int32()).cast(pa.date32())',
        { row: 1, reason: expect.stringContaining('9999') },
      ],
      [
        "pa.array([decimal.Decimal('1.5')], pa.decimal256(50, 2))",
        { reason: expect.stringContaining('50 digits') },
      ],
      [
        "pa.array([[('k', 1)]], pa.map_(pa.string(), pa.int32()))",
        { reason: expect.stringContaining('MAP') },
      ],
      ["[{'a': 1, 'A': 2}]", { reason: expect.stringContaining('two fields "A"') }],
      [
        "[[{'x': 1, 'o': {'b': 1, 'B': 2}}]]",
        { reason: expect.stringContaining('two fields "B"') },
      ],
      // What DuckDB takes for infinity, and 45 B.C.
      [
        'pa.array([[d.date(2020, 1, 1)], [2**31 - 1]], pa.list_(pa.date32()))',
        { row: 2, reason: expect.stringContaining('a date inside of it') },
      ],
      [
        "pa.array([None, {'a,b': 'DATE', '': [{'(\"date': -735599}, None]}], pa.struct([('a,b', pa.string()), ('', pa.list_(pa.struct([('(\"date', pa.date32())])))]))",
        { row: 2, reason: expect.stringContaining('a date inside of it') },
      ],
    ] as const)
      await expect(read(writeColumns(`{'c': ${column}}`)), column).rejects.toMatchObject({
        problems: [{ column: 'c', ...problem }],
      });
    const nested = "[['x,NaN,y', '\\\\\",Infinity]'], ['[NaN]']]";
    expect((await read(writeColumns(`{'c': ${nested}}`)))?.json).toEqual({
      'c text': [['x,NaN,y', '\\",Infinity]'], ['[NaN]']].map(list =>
        JSON.stringify(JSON.stringify(list)),
      ),
    });
    const dates = "[[{'d': d.date(1, 1, 1), 'ä': 'x'}, {'d': d.date(9999, 12, 31)}], []]";
    expect((await read(writeColumns(`{'c': ${dates}}`)))?.json).toEqual({
      'c text': [
        JSON.stringify('[{"d":"0001-01-01","ä":"x"},{"d":"9999-12-31","ä":null}]'),
        '"[]"',
      ],
    });
    // Names of fields are no types.
    const named = "[{'TIME': 1, 'BIT a': [{'MAP': 2.5, 'x\\n': 3}]}]";
    expect((await read(writeColumns(`{'c': ${named}}`)))?.json).toEqual({
      'c text': [JSON.stringify('{"TIME":1,"BIT a":[{"MAP":2.5,"x\\n":3}]}')],
    });
    const old = `{'c': pa.array([1000, 1], pa.timestamp('ns'))}`;
    for (const compression of ['snappy', 'gzip', 'zstd', 'brotli'])
      await expect(
        read(
          writeColumns(old, `, use_deprecated_int96_timestamps=True, compression='${compression}'`),
        ),
      ).rejects.toThrow('nanoseconds');
    const whole = writeColumns(
      old.replace(' 1]', ' 2000]'),
      ', use_deprecated_int96_timestamps=True',
    );
    expect((await read(whole))?.json).toEqual({
      'c timestamp': ['"1970-01-01T00:00:00.000001"', '"1970-01-01T00:00:00.000002"'],
    });
  });

  test('a file that is cut or changed is an error or a table, in bounded time and memory', async () => {
    const columns = `{'n': pa.array(range(3000)), 't': pa.array([str(i % 50) for i in range(3000)]), 'x': pa.array([i / 7 for i in range(3000)])}`;
    const whole = writeColumns(columns, ", row_group_size=1000, compression='gzip'");
    for (const content of damage(whole, { seed: 11, times: 5 })) await expectWholeOrError(content);
    // The footer says how long it is, how many rows there are, and where they lie.
    const footer = whole.readUInt32LE(whole.length - 8);
    const tail = whole.subarray(-8 - footer);
    for (const changed of damage(tail, { seed: 12, times: 5 }).slice(4))
      await expectWholeOrError(Buffer.concat([whole.subarray(0, -8 - footer), changed]));
  });

  test('a page that its checksum does not fit is an error', async () => {
    const column = "{'c': pa.array([f'text {i}' for i in range(5000)], pa.string())}";
    // A column without values has no data page.
    const none = writeColumns("{'c': pa.array([], pa.int64())}", ', write_page_checksum=True');
    expect((await read(none))?.rows).toBe(0);
    const plain = 'use_dictionary=False, write_page_checksum=True, data_page_size=8000';
    for (const version of ['1.0', '2.0'])
      for (const compression of ['none', 'snappy']) {
        const options = `, ${plain}, data_page_version='${version}', compression='${compression}'`;
        const content = writeColumns(column, options);
        expect((await read(content))?.rows).toBe(5_000);
        const at = content.length >> 1;
        content.writeUInt8(content.readUInt8(at) ^ 1, at);
        await expect(read(content)).rejects.toThrow('a page of the column "c"');
      }
  });

  test('a file that is not damaged is not called so', async () => {
    for (const [columns, options, said] of [
      [
        "{'c': pa.array([1, 2])}",
        ", use_dictionary=False, column_encoding={'c': 'BYTE_STREAM_SPLIT'}",
        'is written in a way that is not read: ',
      ],
      ["{'c': pa.array([2**62], pa.timestamp('ms'))}", '', 'outside of the years'],
      ['{}', '', 'there is no column'],
    ] as const)
      await expect(read(writeColumns(columns, options)), columns).rejects.toThrow(said);
  });

  test('an encrypted file is refused as such', async () => {
    const { content } = write(`
import base64
import pyarrow.parquet.encryption as pe
class Kms(pe.KmsClient):
  def __init__(self): super().__init__()
  def wrap_key(self, key, name): return base64.b64encode(key)
options = pe.EncryptionConfiguration(footer_key='f', column_keys={'k': ['c']}, plaintext_footer=True)
properties = pe.CryptoFactory(lambda _: Kms()).file_encryption_properties(pe.KmsConnectionConfig(), options)
table = pa.table({'c': ['a', 'b']})
with pq.ParquetWriter(path, table.schema, encryption_properties=properties) as writer: writer.write_table(table)
print('null')`);
    await expect(read(content)).rejects.toThrow('encrypted');
  });

  test('columns may be called like what we add', async () => {
    const names = ['file_row_number', 'row', 'filename', '\u0001 row'];
    const columns = `{n: pa.array(['x', 'a\\0b']) for n in json.loads(${JSON.stringify(JSON.stringify(names))})}`;
    await expect(read(writeColumns(columns))).rejects.toThrow('NUL');
  });

  test('a name that begins with a byte order mark is another name', async () => {
    const marked = "{'\\ufeffid': pa.array([1]), 'b': pa.array([3]), 'id': pa.array([2])}";
    expect((await read(writeColumns(marked)))?.json).toEqual({
      'id_1 integer': ['1'],
      'b integer': ['3'],
      'id integer': ['2'],
    });
    const alone = (await read(writeColumns("{'\\ufeffid': pa.array([1])}")))?.columns;
    expect(alone).toMatchObject([{ name: 'id', max: '1' }]);
  });

  test('columns of one name but for a byte order mark may be of times in nanoseconds', async () => {
    const times = (nanoseconds: number) => `pa.array([1000, ${nanoseconds}], pa.timestamp('ns'))`;
    const writeTimes = (columns: string) =>
      writeColumns(columns, ', use_deprecated_int96_timestamps=True');
    const others = `'at': pa.array([d.date(2020, 1, 1)] * 2), 'n': pa.array([{'a': 1, 'b': 2}] * 2)`;
    const whole = writeTimes(`{${others}, '\\ufeffat': ${times(2_000)}, 'b': ${times(3_000)}}`);
    expect((await read(whole))?.json).toEqual({
      'at date': ['"2020-01-01"', '"2020-01-01"'],
      'n text': ['"{\\"a\\":1,\\"b\\":2}"', '"{\\"a\\":1,\\"b\\":2}"'],
      'at_1 timestamp': ['"1970-01-01T00:00:00.000001"', '"1970-01-01T00:00:00.000002"'],
      'b timestamp': ['"1970-01-01T00:00:00.000001"', '"1970-01-01T00:00:00.000003"'],
    });
    for (const [marked, other, column] of [
      [1, 2_000, '\ufeffat'],
      [2_000, 1, 'b'],
    ] as const)
      await expect(
        read(writeTimes(`{${others}, '\\ufeffat': ${times(marked)}, 'b': ${times(other)}}`)),
      ).rejects.toMatchObject({
        problems: [{ row: 2, column, reason: expect.stringContaining('nanos') }],
      });
  });

  test('bombs are refused', async () => {
    const bomb = write(`
one = pa.array(['x' * 1000000]).dictionary_encode()
table = pa.table({'t': pa.DictionaryArray.from_arrays(pa.array([0] * 20000, pa.int32()), one.dictionary)})
pq.write_table(table, path)
print('null')`).content;
    expect(bomb.length).toBeLessThan(1 << 20);
    await expect(
      parseConfined(directory.path, { parser: 'parquet', content: bomb }),
    ).rejects.toThrow('expands to more than');
    const wide = writeColumns("{f'c{i}': pa.array([1]) for i in range(2501)}");
    await expect(read(wide)).rejects.toThrow('2,501 columns');
  });
});

async function expectWholeOrError(content: Buffer): Promise<void> {
  const made = await expectBounded(directory.path, { parser: 'parquet', content });
  if (made) expect(made[0]?.rows).toBe(3_000);
}

test('a file that only begins and ends like one is an error', async () => {
  await expect(read(Buffer.from('PAR1\0and no morePAR1'))).rejects.toThrow('is damaged');
});
