import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { type ParsedFile, parseFile } from '../harness/clients/parsed-file.ts';
import { missingReaders, runReader } from '../harness/files/format-readers.ts';
import { damage, expectBounded, parseConfined } from '../harness/files/hostile-files.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { describeUnless } from '../harness/skip.ts';

const directory = makeTempDir('hdf5');
afterAll(() => directory.remove());

/** Writes a file by Python, a script with \`path\`, and what it prints. */
function write<T>(script: string): { content: Buffer; said: T } {
  const path = join(directory.path, 'written.h5');
  const said = runReader<T>(
    `
import json, os, sys, warnings
warnings.simplefilter('ignore')
import h5py, netCDF4, numpy as np
r = np.random.default_rng(7)
path = sys.argv[1]
${script}`,
    path,
  );
  return { content: readFileSync(path), said };
}

const build = (lines: string) =>
  write<null>(
    `with h5py.File(path, 'w') as f:\n  ${lines.trim().split('\n').join('\n  ')}\nprint('null')`,
  ).content;

const read = (content: Uint8Array, parser: 'hdf5' | 'netcdf' = 'hdf5') =>
  parseFile(directory.path, { parser, content });

/** The values of an array by NumPy: shape, type and bytes in hexadecimal. */
const loadArrays = (files: ParsedFile[]) =>
  runReader<Record<string, [number[], string, string]>>(
    `
import json, sys
import numpy as np
print(json.dumps({p: [list(a.shape), a.dtype.str, a.tobytes().hex()] for p in sys.argv[1:] for a in [np.load(p)]}))`,
    ...files.map(({ path }) => path),
  );

describeUnless(missingReaders, 'HDF5 files of h5py', () => {
  test('every value is what h5py reads', async () => {
    const { content, said } = write<{
      columns: Record<string, unknown[]>;
      arrays: Record<string, [number[], string, string]>;
    }>(`
n = 3000
text = lambda: ''.join(r.choice(list('aä€😀",\\n '), r.integers(0, 6)))
columns = {}
with h5py.File(path, 'w') as f:
  g = f.create_group('many/rows')
  for code in ['i1', 'u1', '<i2', '>i2', '<u4', '>i4', '<i8', '>i8', '<u8', '<f4', '>f4', '<f8', '>f8']:
    t = np.dtype(code)
    v = r.choice([0.1, -1.5, np.nan, np.inf, -np.inf, -0.0, 3e-5], n).astype(t) if t.kind == 'f' else r.integers(np.iinfo(t.newbyteorder('=')).min, np.iinfo(t.newbyteorder('=')).max, n, dtype=t.newbyteorder('='), endpoint=True).astype(t)
    name = code.replace('<', 'l').replace('>', 'b')
    g.create_dataset(name, data=v, chunks=(700,) if code[-1] in '48' else None, compression='gzip' if code[-1] == '8' else None, shuffle=code[-1] == '8', fletcher32=code[-1] == '4')
  g['bool'] = r.random(n) < .5
  g['text'] = np.array([text() for _ in range(n)], dtype=h5py.string_dtype())
  g['fixed'] = np.array([text()[:3].encode() for _ in range(n)], dtype='S12')
  g['lu4'].attrs['units'] = 'm/s'
  for name, v in {'cube': r.random((7, 300, 40)), 'small': r.integers(0, 9, (2, 3), dtype='u1'), 'big': r.integers(0, 2**64 - 1, (300, 5), dtype='u8'), 'flags': r.random((9, 9)) < .5, 'be': r.random((5, 4)).astype('>f4'), 'scalar': np.float64(2.5), 'none': np.zeros((0, 3))}.items():
    f.create_dataset('arrays/' + name, data=v, chunks=(3, 100, 40) if name == 'cube' else None, compression='gzip' if name == 'cube' else None)
with h5py.File(path) as f:
  def say(v):
    if isinstance(v, bytes): return v.decode()
    if isinstance(v, float): return 'NaN' if v != v else ('-Infinity' if v < 0 else 'Infinity') if v - v != 0 else v
    return str(v) if isinstance(v, int) and not isinstance(v, bool) else v
  columns = {name: [say(v) for v in d[()].tolist()] for name, d in f['many/rows'].items()}
  arrays = {name: [list(d.shape), d.dtype.newbyteorder('<').str, d[()].astype(d.dtype.newbyteorder('<')).tobytes().hex()] for name, d in f['arrays'].items()}
print(json.dumps({'columns': columns, 'arrays': arrays}))`);
    const made = await read(content);
    expect(Object.keys(made).sort()).toEqual(
      ['many/rows', ...Object.keys(said.arrays).map(name => `arrays/${name}`)].sort(),
    );
    const table = made['many/rows'];
    expect(table?.columns?.find(({ name }) => name === 'lu4')?.unit).toBe('m/s');
    expect(Object.keys(table?.json ?? {})).toEqual(
      Object.keys(said.columns).map(name => {
        const types = { bool: 'boolean', text: 'text', fixed: 'text', lu8: 'text' };
        const type = (types as Record<string, string>)[name];
        return `${name} ${type ?? (name.includes('f') ? 'number' : 'integer')}`;
      }),
    );
    for (const [column, cells] of Object.entries(table?.json ?? {})) {
      const name = column.split(' ')[0] as string;
      const values = cells.map(cell => {
        const value = JSON.parse(cell) as unknown;
        return column.endsWith('integer') ? String(value) : value;
      });
      expect({ [name]: values }).toEqual({ [name]: said.columns[name] });
    }
    const files = Object.values(made).filter(({ kind }) => kind === 'array');
    const loaded = loadArrays(files);
    for (const { name, path } of files)
      expect({ [name]: loaded[path] }).toEqual({ [name]: said.arrays[name.slice(7)] });
  });

  test('arrays in chunks of many pictures are what h5py reads', async () => {
    const { content, said } = write<Record<string, string>>(`
import hashlib
said = {}
with h5py.File(path, 'w') as f:
  for name, shape, chunks in [('film', (23, 301, 401), (7, 64, 50)), ('deep', (3, 5, 211, 417), (2, 5, 100, 100)), ('wide', (1301, 1607), (1301, 3))]:
    v = r.integers(-2**62, 2**62, shape)
    f.create_dataset(name, data=v, chunks=chunks, compression='gzip', compression_opts=1)
    said[name] = hashlib.sha256(v.tobytes()).hexdigest()
print(json.dumps(said))`);
    const files = Object.values(await read(content));
    const sums = runReader<Record<string, string>>(
      `
import hashlib, json, sys
import numpy as np
print(json.dumps({p: hashlib.sha256(np.load(p).tobytes()).hexdigest() for p in sys.argv[1:]}))`,
      ...files.map(({ path }) => path),
    );
    expect(Object.fromEntries(files.map(({ name, path }) => [name, sums[path]]))).toEqual(said);
  });

  test('tables by group and length, records, what is left out and said', async () => {
    const made = await read(
      build(`
f['t'] = np.arange(3); f['v'] = np.arange(3) / 2
f['other/a'] = [1, 2]; f['other/b'] = [1, 2, 3]
f['rec'] = np.array([(1, b'x'), (2, b'yz')], dtype=[('n', 'i4'), ('s', 'S3')])
f['note'] = 'a text'
f['complex'] = np.zeros(3, 'c16'); f['half'] = np.zeros(3, 'f2'); f['texts'] = np.array([['a', 'b']], dtype=h5py.string_dtype())
f['soft'] = h5py.SoftLink('/t'); f['gone'] = h5py.SoftLink('/nothing'); f['away'] = h5py.ExternalLink('/etc/passwd', '/')
f['empty'] = h5py.Empty('f8')`),
    );
    const found = Object.entries(made).map(([name, { json }]) => [name, json]);
    expect(Object.fromEntries(found)).toEqual({
      '': { 't integer': ['0', '1', '2'], 'v number': ['0', '0.5', '1'] },
      'other/2': { 'a integer': ['1', '2'] },
      'other/3': { 'b integer': ['1', '2', '3'] },
      rec: { 'n integer': ['1', '2'], 's text': ['"x"', '"yz"'] },
      note: { 'note text': ['"a text"'] },
      complex: { 'r number': ['0', '0', '0'], 'i number': ['0', '0', '0'] },
    });
    const skipped = Object.values(made).flatMap(({ skipped }) => skipped?.problems ?? []);
    expect(skipped.map(({ column }) => column).sort()).toEqual(['half', 'texts']);
    const behind = write(`
with h5py.File(path, 'w', userblock_size=512) as f: f['t'] = [7]
with open(path, 'r+b') as f: f.write(b'MATLAB 7.3 MAT-file')
print('null')`).content;
    expect((await read(behind))['']?.json).toEqual({ 't integer': ['7'] });
    await expect(read(build("f['half'] = np.zeros(3, 'f2')"))).rejects.toThrow('left out');
    await expect(read(build(''.concat('pass')))).rejects.toThrow('no dataset');
    await expect(read(build("f['x'] = np.array([b'\\xff'], dtype='S1')"))).rejects.toMatchObject({
      problems: [{ row: 1, column: 'x' }],
    });
  });

  test('a dataset that no table can have is left out, and the others are kept', async () => {
    const skippedOf = (made: Record<string, ParsedFile>) =>
      Object.values(made).flatMap(({ skipped }) => skipped?.problems ?? []);
    const latin = await read(
      build(
        "f['n'] = np.arange(2); f['ok'] = np.array([b'a', b'b']); f['x'] = np.array([b'a', b'\\xe4'], dtype='S1')",
      ),
    );
    expect(latin['']?.json).toEqual({ 'n integer': ['0', '1'], 'ok text': ['"a"', '"b"'] });
    expect(skippedOf(latin)).toEqual([
      { row: 2, column: 'x', reason: 'the dataset is left out: its bytes are no UTF-8' },
    ]);
    const wide = await read(
      build("f['a/n'] = np.arange(2)\nfor i in range(2501): f[f'b/c{i}'] = np.arange(1)"),
    );
    expect([Object.keys(wide), wide.a?.skipped?.count, skippedOf(wide)[0]?.reason]).toEqual([
      ['a'],
      2_501,
      expect.stringContaining('2,501 columns'),
    ]);
    const twice = await read(
      build(
        "f['t/a'] = np.arange(2); f['t/b'] = np.arange(3); f['t/3'] = np.zeros((2, 2)); f['u/1/x'] = [1]; f['u/0'] = [2]; f['u/z'] = [1, 2]",
      ),
    );
    expect(Object.keys(twice).sort()).toEqual(['t/2', 't/3', 'u/1', 'u/2']);
    expect(twice['u/1']?.json).toEqual({ 'x integer': ['1'] });
    expect(skippedOf(twice).map(({ column }) => column)).toEqual(['t/b', 'u/0']);
  });

  test('a long name of what is left out is cut between characters', async () => {
    const path = `${`${'g'.repeat(249)}/`.repeat(3)}${'x'.repeat(248)}`;
    const made = await read(build(`f['n'] = np.arange(2); f['${path}😀'] = np.zeros(3, 'f2')`));
    // Half of one could not be stored.
    expect(made['']?.skipped?.problems.map(({ column }) => column)).toEqual([path]);
  });

  test('records of both byte orders, enumerations, texts with a NUL, foreign filters', async () => {
    const made = await read(
      build(`
color = h5py.enum_dtype({'RED': 0, 'BLUE': 5}, basetype='>i2')
f['mixed'] = np.array([(1, 2.5, 2**64 - 2, 5, True, b'ab'), (-2, -0.5, 7, 0, False, b'')], dtype=[('i', '>i4'), ('x', '<f4'), ('u', '>u8'), ('e', color), ('b', '?'), ('s', 'S3')])
f['big'] = np.array([(1, 2.5)], dtype=[('i', '>i4'), ('x', '>f8')])
f['enum'] = np.array([0, 5], dtype=color)
f.create_dataset('lzf', data=np.arange(50), chunks=(10,), compression='lzf')
f.create_dataset('gzip', data=np.arange(2), chunks=(2,), compression='gzip', shuffle=True)`),
    );
    expect(
      Object.fromEntries(Object.entries(made).map(([name, { json }]) => [name, json])),
    ).toEqual({
      mixed: {
        'i integer': ['1', '-2'],
        'x number': ['2.5', '-0.5'],
        'u text': ['"18446744073709551614"', '"7"'],
        'e integer': ['5', '0'],
        'b boolean': ['true', 'false'],
        's text': ['"ab"', '""'],
      },
      big: { 'i integer': ['1'], 'x number': ['2.5'] },
      '': { 'gzip integer': ['0', '1'] },
    });
    const skipped = Object.values(made).flatMap(({ skipped }) => skipped?.problems ?? []);
    expect(skipped.map(({ column, reason }) => [column, reason]).sort()).toEqual([
      ['enum', expect.stringContaining('of a type that no column')],
      ['lzf', expect.stringContaining('the filter lzf')],
    ]);
    await expect(
      read(build("f['s'] = np.array([b'x', b'a\\0b'], dtype='S3')")),
    ).rejects.toMatchObject({
      problems: [{ row: 2, column: 's', reason: expect.stringContaining('NUL') }],
    });
  });

  test('of records the fields that can be columns are kept, and the others are named with their types', async () => {
    const tail = `('h', 'f2'), ('hh', 'f2', (2,)), ('o', 'V3'), ('n', 'i4')`;
    const made = await read(
      build(`
list, text = h5py.vlen_dtype('i4'), h5py.string_dtype()
pair = lambda lo, hi: [('a', lo + 'i4'), ('v', hi + 'f4', (2,)), ('m', lo + 'i2', (2, 2)), ('s', [('x', lo + 'i2'), ('y', hi + 'f8')]), ('c', lo + 'c16'), ('b', '?', (2,)), ('z', 'S2', (2,)), ${tail}]
one = lambda k: (k, [k + .5, -2.5], [[1, 2], [3, k]], (7, k / 4), 1 - 2j * k, [True, False], [b'p', b'q'], 0.5, [1, 2], b'abc', -k)
for name, (lo, hi) in {'mixed': '<>', 'little': '<<', 'big': '>>'}.items():
  kind = [field for field in pair(lo, hi) if name != 'big' or field[0] != 'b']
  f[name] = np.array([tuple(value for value, field in zip(one(k), pair(lo, hi)) if field in kind) for k in [1, 9]], dtype=[(field[0], '>i4') if field[0] == 'n' and name == 'big' else field for field in kind])
f['texts'] = np.array([(1, 'é', 2.5), (2, '', 3.5)], dtype=[('a', '<i4'), ('t', text), ('x', '<f8')])
f['turned'] = np.array([('€', 2.5)], dtype=[('t', text), ('x', '>f8')])
d = f.create_dataset('lists', (2,), dtype=[('l', list), ('r', h5py.ref_dtype), ('x', '<f8')]); d['x'] = [1, 2]
f['enum'] = np.array([(1, 0)], dtype=[('a', '>i4'), ('e', h5py.enum_dtype({'RED': 0}, basetype='>i2'))])
f['wide'] = np.array([([2**63, 5], np.zeros(2501), 1)], dtype=[('u', 'u8', (2,)), ('many', 'i1', (2501,)), ('n', 'i1')])
f['none'] = np.zeros(2, dtype=[('h', 'f2')])
f.create_dataset('chunks', data=np.array([(k, [k, -k]) for k in range(9000)], dtype=[('a', 'i8'), ('v', 'i2', (2,))]), chunks=(700,), compression='gzip')`),
    );
    const table = (rows: string[][], names: string[]) =>
      Object.fromEntries(names.map((name, i) => [name, rows.map(row => row[i])]));
    const names =
      'a integer,v[0] number,v[1] number,m[0][0] integer,m[0][1] integer,m[1][0] integer,m[1][1] integer,s.x integer,s.y number,c.r number,c.i number,b[0] boolean,b[1] boolean,z[0] text,z[1] text,n integer'.split(
        ',',
      );
    const row = (k: number) =>
      [k, k + 0.5, -2.5, 1, 2, 3, k, 7, k / 4, 1, -2 * k, true, false, '"p"', '"q"', -k].map(
        String,
      );
    const without = (list: string[]) => list.filter((_, i) => i !== 11 && i !== 12);
    const { chunks, ...others } = made;
    expect(
      Object.fromEntries(Object.entries(others).map(([name, { json }]) => [name, json])),
    ).toEqual({
      mixed: table([row(1), row(9)], names),
      little: table([row(1), row(9)], names),
      big: table([without(row(1)), without(row(9))], without(names)),
      texts: { 'a integer': ['1', '2'], 't text': ['"é"', '""'], 'x number': ['2.5', '3.5'] },
      turned: { 't text': ['"€"'], 'x number': ['2.5'] },
      lists: { 'x number': ['1', '2'] },
      wide: { 'u[0] text': ['"9223372036854775808"'], 'u[1] integer': ['5'], 'n integer': ['1'] },
    });
    expect(chunks?.json?.['v[1] integer']).toEqual(
      Array.from({ length: 9_000 }, (_, k) => `${0 - k}`),
    );
    const skipped = Object.values(made).flatMap(({ skipped }) => skipped?.problems ?? []);
    const said = skipped.map(({ column, reason }) => `${column}: ${reason}`).sort();
    const left = (field: string, type: string) =>
      `the field ${field} is left out: its values are of a type that no column of a table is: ${type}`;
    const same = ['big', 'little', 'mixed'].flatMap(name => [
      `${name}: ${left('h', 'floats of 2 bytes')}`,
      `${name}: ${left('hh', 'arrays of floats of 2 bytes')}`,
      `${name}: ${left('o', 'opaque bytes')}`,
    ]);
    expect(said).toEqual(
      [
        ...same,
        'enum: the dataset is left out: one of its fields is a big-endian enumeration',
        `lists: ${left('l', 'lists of variable length')}`,
        `lists: ${left('r', 'references')}`,
        `none: ${left('h', 'floats of 2 bytes')}`,
        `wide: ${left('many', 'arrays of more than 2,500 values')}`,
      ].sort(),
    );
  });

  test('a table of pandas keeps its values', async () => {
    // As DataFrame.to_hdf(format='table') lays it out.
    const made = await read(
      build(`
kind = [('index', '<i8'), ('values_block_0', '<f8', (2,)), ('values_block_1', 'S1', (1,))]
f['df/table'] = np.array([(0, [1.5, 3], [b'x']), (1, [2, 4], [b'y'])], dtype=kind)`),
    );
    expect(made['df/table']?.json).toEqual({
      'index integer': ['0', '1'],
      'values_block_0[0] number': ['1.5', '2'],
      'values_block_0[1] number': ['3', '4'],
      'values_block_1[0] text': ['"x"', '"y"'],
    });
  });

  test('a group that lies within itself is read once', async () => {
    const made = await read(
      build(`
f['g/x'] = [1, 2]; f['g/loop'] = f['g']; f['g/up'] = f['/']; f['twice'] = f['g']`),
    );
    expect(Object.keys(made).sort()).toEqual(['g', 'twice']);
  });

  test('numbers that do not use all bits of their bytes, or are not of IEEE 754, are left out and said', async () => {
    const made = await read(
      build(`
from h5py import h5t, h5d, h5s
def put(name, type, values):
  h5d.create(f.id, name.encode(), type, h5s.create_simple(values.shape)).write(h5s.ALL, h5s.ALL, values)
def reduced(type, precision, offset):
  type = type.copy(); type.set_precision(precision); type.set_offset(offset); return type
i, x = np.array([1, -5, 100], 'i4'), np.array([1, -5, 100], 'f4')
put('precision', reduced(h5t.STD_I32LE, 20, 0), i)
put('big', reduced(h5t.STD_I32BE, 20, 0), i)
put('offset', reduced(h5t.STD_I32LE, 20, 4), i)
put('one', reduced(h5t.STD_I64LE, 63, 0), i)
put('square', reduced(h5t.STD_I32LE, 20, 4), i.reshape(3, 1))
h5d.create(f.id, b'bits', h5t.STD_B32LE, h5s.create_simple(i.shape)).write(h5s.ALL, h5s.ALL, i, h5t.STD_B32LE)
bias = h5t.IEEE_F32LE.copy(); bias.set_ebias(120); put('bias', bias, x)
short = h5t.IEEE_F32LE.copy(); short.set_fields(27, 20, 7, 0, 20); short.set_precision(28); put('short', short, x)
record = h5t.create(h5t.COMPOUND, 12); record.insert(b's', 0, h5t.py_create('S4')); record.insert(b'ok', 4, h5t.STD_I32LE); record.insert(b'n', 8, reduced(h5t.STD_I32LE, 20, 4))
put('record', record, np.zeros(2, [('s', 'S4'), ('ok', 'i4'), ('n', 'i4')]))
reduced(h5t.STD_I32LE, 20, 4).commit(f.id, b'type'); put('committed', h5t.open(f.id, b'type'), i)
f['plain'] = i`),
    );
    expect(Object.entries(made).map(([name, { json }]) => [name, json])).toEqual([
      ['record', { 's text': ['""', '""'], 'ok integer': ['0', '0'] }],
      ['', { 'plain integer': ['1', '-5', '100'] }],
    ]);
    const skipped = Object.values(made).flatMap(({ skipped }) => skipped?.problems ?? []);
    const unusual = expect.stringContaining('laid out in bits in an unusual way');
    expect(Object.fromEntries(skipped.map(({ column, reason }) => [column, reason]))).toMatchObject(
      {
        precision: unusual,
        big: unusual,
        offset: unusual,
        one: unusual,
        square: unusual,
        bias: unusual,
        short: unusual,
        record: unusual,
        committed: unusual,
        bits: expect.stringContaining('of a type that no column'),
      },
    );
  });

  test.each([
    ["libver='earliest'", ''],
    ["libver='latest'", ''],
    ["libver=('v108', 'v110'), userblock_size=512", ''],
    ['userblock_size=16384', ''],
    ['track_order=True', ''],
    ["libver='latest', track_order=True", 'track_times=True, '],
  ])('plain numbers are found in files of %s', async (options, more) => {
    const { content } = write<null>(`
color = h5py.enum_dtype({'RED': 0, 'A LONGER NAME': 5}, basetype='i2')
with h5py.File(path, 'w', ${options}) as f:
  for name in ['first', 'many']:
    f.create_dataset(name, ${more}data=np.arange(3), chunks=(2,), maxshape=(None,), compression='gzip', shuffle=True, fillvalue=7)
  for i in range(40): f['many'].attrs['attribute %d' % i] = 'x' * 500
  f['type'] = np.dtype('>f4')
  f.create_dataset('committed', (3,), dtype=f['type'])[:] = [1, 2, 3]
  f['rec'] = np.array([(1, 5, True, b'x', 2.5, 3, 7)], dtype=[('n', 'i4'), ('e', color), ('b', '?'), ('s', 'S3'), ('x', '<f8'), ('y' * 300, '<f4'), ('u', 'u1')])
  before = f.userblock_size
with open(path, 'r+b') as f: f.write(b'MATLAB 7.3 MAT-file' if before else b'')
print('null')`);
    const made = await read(content);
    const said = Object.entries(made).map(([name, { json, skipped }]) => [name, json, skipped]);
    expect(said.sort()).toEqual([
      [
        '',
        {
          'committed number': ['1', '2', '3'],
          'first integer': ['0', '1', '2'],
          'many integer': ['0', '1', '2'],
        },
        undefined,
      ],
      [
        'rec',
        {
          'n integer': ['1'],
          'e integer': ['5'],
          'b boolean': ['true'],
          's text': ['"x"'],
          'x number': ['2.5'],
          [`${'y'.repeat(300)} number`]: ['3'],
          'u integer': ['7'],
        },
        undefined,
      ],
    ]);
  });

  test('nothing of the machine is read: external storage, virtual datasets', async () => {
    const secret = join(directory.path, 'secret');
    const storage = `f.create_dataset('x', shape=(10,), dtype='u1', external=[(${JSON.stringify(secret)}, 0, 10)])`;
    const external = build(`open(${JSON.stringify(secret)}, 'w').write('0123456789'); ${storage}`);
    await expect(read(external)).rejects.toThrow('left out: its values are in other files');
    for (const version of ['earliest', 'latest']) {
      const both = build(`
f.close()
f = h5py.File(path, 'w', libver='${version}')
${storage}
f['y'] = np.arange(2)`);
      const made = await read(both);
      expect(made['']?.json).toEqual({ 'y integer': ['0', '1'] });
      expect(made['']?.skipped).toMatchObject({ count: 1, problems: [{ column: 'x' }] });
    }
    const other = join(directory.path, 'other.h5');
    const virtual = build(`
with h5py.File(${JSON.stringify(other)}, 'w') as o: o['d'] = np.arange(5) + 100
layout = h5py.VirtualLayout(shape=(5,), dtype='i8'); layout[:] = h5py.VirtualSource(${JSON.stringify(other)}, 'd', shape=(5,))
f.create_virtual_dataset('v', layout)`);
    await expect(read(virtual)).rejects.toThrow('left out: its values are in other files');
  });

  test('bombs are refused, and damage is an error or what is left, in bounded time and memory', async () => {
    const sparse = build("f.create_dataset('x', shape=(10**12,), dtype='f8', chunks=(1000,))");
    await expect(read(sparse)).rejects.toThrow('1,000 times');
    const loop = build("g = f.create_group('g'); g['again'] = g; g['x'] = [1]");
    expect((await read(loop)).g?.json).toEqual({ 'x integer': ['1'] });
    const deflated = build(
      "f.create_dataset('x', shape=(900000,), dtype='f8', chunks=(900000,), compression='gzip'); f['x'][:] = 0",
    );
    await parseConfined(directory.path, { parser: 'hdf5', content: deflated });
    const whole = build(`
f['t'] = np.arange(300); f.create_dataset('c', data=np.arange(300) / 7, chunks=(100,), compression='gzip', fletcher32=True)
f['g/m'] = np.arange(60).reshape(6, 10); f['s'] = np.array(['a', 'bc'] * 150, dtype=h5py.string_dtype())`);
    for (const content of damage(whole, { seed: 4, times: 4 }))
      await expectBounded(directory.path, { parser: 'hdf5', content });
  });

  test('netCDF-4', async () => {
    const { content } = write<null>(`
with netCDF4.Dataset(path, 'w') as d:
  d.createDimension('time', None); d.createDimension('x', 2); d.createDimension('bare', 4)
  t = d.createVariable('time', 'f8', ('time',)); t.units = 'days since 2000-01-01'; t[:] = [0, 1, 2]
  v = d.createVariable('temperature', 'i2', ('time', 'x'), zlib=True, fill_value=-99); v.units = 'K'; v.scale_factor = .1
  v.set_auto_maskandscale(False); v[:] = [[1, 2], [3, -99], [5, 6]]
  d.createVariable('bare_one', 'i4', ('bare',))[:] = [1, 2, 3, 4]
print('null')`);
    const made = await read(content, 'netcdf');
    expect(Object.keys(made).sort()).toEqual(['3', '4', 'temperature']);
    expect(made['3']?.json).toEqual({ 'time number': ['0', '1', '2'] });
    expect(made['3']?.columns?.[0]?.unit).toBe('days since 2000-01-01');
    expect(made['4']?.json).toEqual({ 'bare_one integer': ['1', '2', '3', '4'] });
    expect(made.temperature?.columns).toEqual([
      { name: '', type: 'integer', min: '-99', max: '6', nulls: 0, unit: 'K' },
    ]);
    await expect(read(Buffer.from('CDF\x01'), 'netcdf')).rejects.toThrow('a netCDF-3 file');
  });
});
