import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { parseNpyHeader } from '../../shared/arrays/npy-header.ts';
import { parseFile } from '../harness/clients/parsed-file.ts';
import { missingReaders, runReader } from '../harness/files/format-readers.ts';
import { damage, expectBounded, expectReadOrRefused } from '../harness/files/hostile-files.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { describeUnless } from '../harness/skip.ts';

const directory = makeTempDir('npy');
afterAll(() => directory.remove());

const read = async (content: Uint8Array) =>
  (await parseFile(directory.path, { parser: 'npy', content }))[''];

/** An NPY file by its header and its bytes. */
function npy(header: string, bytes = Buffer.alloc(0), version = 1): Buffer {
  const text = Buffer.from(header, 'latin1');
  const head = Buffer.from('\x93NUMPY\x01\0\0\0', 'latin1');
  head[6] = version;
  head.writeUInt16LE(text.length, 8);
  return Buffer.concat([head, text, bytes]);
}
const header = (descr: string, shape: string) =>
  `{'descr': ${descr}, 'fortran_order': False, 'shape': ${shape}, }\n`;

/** Saves an expression of Python. */
function save<T = null>(array: string, say = 'None'): { content: Buffer; said: T } {
  const path = join(directory.path, 'saved.npy');
  const script = `
import json, sys
import numpy as np
r = np.random.default_rng(7)
def say(v):
  if isinstance(v, float): return 'NaN' if v != v else ('-Infinity' if v < 0 else 'Infinity') if v - v != 0 else v
  return v
a = ${array}
np.save(sys.argv[1], a)
a = np.load(sys.argv[1])
print(json.dumps(${say}))`;
  const said = runReader<T>(script, path);
  return { content: readFileSync(path), said };
}

test('a name that no table has is an error', async () => {
  const content = npy(header("[('a\\x00', '<i4')]", '(1,)'), Buffer.alloc(4));
  await expect(read(content)).rejects.toThrow('the name of column 1 has a NUL character');
});

test('texts of lines that look like rows', async () => {
  const rows = 40_000;
  const lines = Array.from({ length: 8 }, (_, k) => `2020-01-01 10:00:0${k},INFO step ${k}`);
  const text = lines.join('\n');
  const size = 6 + text.length;
  const records = Buffer.alloc(rows * size);
  for (let n = 0; n < rows; n++) records.write(`${n}`.padStart(6, '0') + text, n * size);
  const descr = `[('id', '|S6'), ('log', '|S${text.length}')]`;
  const { json = {} } = (await read(npy(header(descr, `(${rows},)`), records))) ?? {};
  const [ids = [], logs = []] = Object.values(json);
  expect([ids.length, logs.length]).toEqual([rows, rows]);
  expect(ids.findIndex((id, n) => Number(JSON.parse(id)) !== n)).toBe(-1);
  expect(logs.findIndex(log => log !== JSON.stringify(text))).toBe(-1);
});

describeUnless(missingReaders, 'NumPy files', () => {
  test('records are a table, each value as NumPy reads it', async () => {
    const fields = [
      ...['b1', 'i1', 'u1', '<i2', '>i2', '<u4', '>i4', '<i8', '>i8', '<u8', '>f4', '<f4'],
      ...['<f8', '>f8', '<f2', 'S7', '<U5', '>U5'],
    ];
    const { content, said } = save<Record<string, unknown[]>>(
      `np.zeros(900, dtype=np.dtype([(f'c{i}', t) for i, t in enumerate(${JSON.stringify(fields)})], align=True))
for name in a.dtype.names:
  kind, size = a.dtype[name].kind, a.dtype[name].itemsize
  if kind in 'iu': a[name] = r.integers(np.iinfo(a.dtype[name].newbyteorder('=')).min, np.iinfo(a.dtype[name].newbyteorder('=')).max, 900, dtype=a.dtype[name].newbyteorder('='), endpoint=True)
  elif kind == 'b': a[name] = r.random(900) < .5
  elif kind == 'f': a[name] = r.choice([0.1, -1.5, float('nan'), float('inf'), -float('inf'), -0.0, 3e-5], 900)
  elif kind == 'S': a[name] = r.choice([b'', b'abc', 'äöü'.encode(), b'7 chars'], 900)
  else: a[name] = r.choice(['', 'a"b,', 'äöü', '😀x\\n'], 900)
`,
      `{n: [v.decode() if isinstance(v, bytes) else str(v) if abs(v if isinstance(v, int) else 0) > 2**31 or a.dtype[n].str in ('<i8', '>i8', '<u8') else say(v) for v in a[n].tolist()] for n in a.dtype.names}`,
    );
    const { json = {}, rows } = (await read(content)) ?? {};
    expect(rows).toBe(900);
    const found = Object.entries(json);
    expect(found.map(([name]) => name.split(' ')[1])).toEqual([
      ...['boolean', 'integer', 'integer', 'integer', 'integer', 'integer', 'integer'],
      ...['integer', 'integer', 'text', 'number', 'number', 'number', 'number', 'number'],
      ...['text', 'text', 'text'],
    ]);
    for (const [i, [name, cells]] of found.entries()) {
      const values = cells.map(cell => {
        const value = JSON.parse(cell) as unknown;
        return typeof value === 'number' && Math.abs(value) > 2 ** 31 ? String(value) : value;
      });
      expect({ [name]: values }).toEqual({ [name]: said[`c${i}`] });
    }
  });

  test('one dimension is a table, times too', async () => {
    expect((await read(save('np.array([1.5, np.nan])').content))?.json).toEqual({
      'value number': ['1.5', '"NaN"'],
    });
    expect((await read(save("np.array([], dtype='<i4')").content))?.rows).toBe(0);
    const times = "np.array(['2020-01-02T03:04:05.000006', 'NaT'], dtype='M8[us]')";
    expect((await read(save(times).content))?.json).toEqual({
      'value timestamp': ['"2020-01-02T03:04:05.000006"', 'null'],
    });
    const days = "np.array(['0001-01-01', '9999-12-31'], dtype='>M8[D]')";
    expect((await read(save(days).content))?.json).toEqual({
      'value date': ['"0001-01-01"', '"9999-12-31"'],
    });
    for (const [array, problem] of [
      ["np.array(['2020-01-02T03:04:05.000000001'], dtype='M8[ns]')", { row: 1, column: 'value' }],
      ["np.array(['x', b'\\xff'], dtype='S1')", { row: 2, column: 'value' }],
      ["np.array(['a\\0b'])", { row: 1 }],
      ['np.array([1j])', { column: 'value', reason: expect.stringContaining('c16') }],
      ["np.zeros(2, dtype=[('a', 'i4', 3)])", { column: 'a' }],
      ["np.zeros((2, 2), dtype='U3')", { reason: expect.stringContaining('2 dimensions') }],
    ] as const)
      await expect(read(save(array).content), array).rejects.toMatchObject({
        problems: [problem],
      });
  });

  test('an array is stored in C order and little-endian, as NumPy reads it again', async () => {
    for (const array of [
      "r.integers(-2**63, 2**63 - 1, (3, 4, 5), dtype='i8')",
      "np.asfortranarray(r.random((300, 7, 40)).astype('>f8'))",
      "r.random((5, 6)).astype('f2')",
      'r.random((2, 1, 3)) < .5',
      "r.integers(0, 255, (4, 4)).astype('>u2').T",
      'np.array(2.5)',
      "np.zeros((3, 0, 2), dtype='i4')",
    ]) {
      const { content } = save(array);
      const made = await read(content);
      expect(made?.kind).toBe('array');
      const script = `
import json, sys
import numpy as np
a, b = np.load(sys.argv[1]), np.load(sys.argv[2])
print(json.dumps([a.shape == b.shape, b.flags.c_contiguous, a.astype(b.dtype).tobytes() == b.tobytes(), (a == b).all().item(),
  [v.item() if a.dtype.kind != 'i' else str(v) for v in (a.min(), a.max())] if a.size else [None, None]]))`;
      const saved = join(directory.path, 'saved.npy');
      const [sameShape, isC, sameBytes, same, range] = runReader<unknown[]>(
        script,
        saved,
        made?.path ?? '',
      );
      expect([array, sameShape, isC, sameBytes, same]).toEqual([array, true, true, true, true]);
      const [column] = made?.columns ?? [];
      const { min, max } = column ?? {};
      const numbers = [min, max].map(value => (array.includes('>u2') ? Number(value) : value));
      expect([array, numbers]).toEqual([array, range]);
    }
  });

  test('a file that is cut or changed is an error or what it says, in bounded time and memory', async () => {
    const whole = save("np.zeros(400, dtype=[('a', '<f8'), ('b', 'U4'), ('c', 'M8[ms]')])").content;
    const array = save('r.random((40, 10))').content;
    for (const bytes of [whole, array]) {
      const end = parseNpyHeader(bytes).offset;
      for (const content of damage(bytes, { seed: 5, times: 8 }))
        await expectReadOrRefused(directory.path, { parser: 'npy', content });
      for (const head of damage(bytes.subarray(0, end), { seed: 6, times: 8 }).slice(4))
        await expectReadOrRefused(directory.path, {
          parser: 'npy',
          content: Buffer.concat([head, bytes.subarray(end)]),
        });
    }
    const cut = whole.subarray(0, -1);
    await expectBounded(directory.path, { parser: 'npy', content: cut });
  });
});

test('lies of a header are named', async () => {
  for (const [content, reason] of [
    [npy(header("'<f8'", '(3,)'), Buffer.alloc(16)), 'there are 3 values of 8 bytes'],
    [npy(header("'<f8'", '(2,)'), Buffer.alloc(24)), 'there are 24 bytes'],
    [npy(header("'<f8'", '(9007199254740991, 9007199254740991)')), 'there are 0 bytes'],
    [npy(header("'|S0'", '(900000000000000,)')), "NumPy's type |S0"],
    [npy(header("'|S2000000000'", '(1,)')), "NumPy's type |S2000000000"],
    [npy(header("'<f8'", '(-1,)')), 'lacks type, order or shape'],
    [npy(header("'|O'", '(1,)'), Buffer.from('cos\nsystem\n')), "NumPy's type |O"],
    [npy('__import__("os")\n'), 'no dictionary of literals'],
    [npy(`{'shape': ${'('.repeat(60_000)}`), 'no dictionary of literals'],
    [npy(header("'<f8'", '(1,)'), Buffer.alloc(8), 9), 'its version is 9'],
    [npy(header("'<f8'", '(1,)')).subarray(0, 30), 'its header is cut'],
    [
      npy(header(`[${"('a', '<f8'), ".repeat(3_000)}]`, '(1,)'), Buffer.alloc(24_000)),
      '3,000 columns',
    ],
  ] as const)
    await expect(read(content), reason).rejects.toThrow(reason);
});
