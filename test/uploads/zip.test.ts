import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, expect, test } from 'vitest';
import { parseFile } from '../harness/clients/parsed-file.ts';
import { missingReaders, runReader } from '../harness/files/format-readers.ts';
import { damage, expectReadOrRefused, parseConfined } from '../harness/files/hostile-files.ts';
import { makeZip, type ZipMember } from '../harness/files/make-zip.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { describeUnless } from '../harness/skip.ts';

const directory = makeTempDir('zip');
afterAll(() => directory.remove());

const read = (content: Uint8Array, expanded?: number, parameters?: object) =>
  parseFile(directory.path, { parser: 'zip', content, expanded, parameters });
const CSV = { name: 'a.csv', content: 'n\n1\n' };

test('each file is read by the parser of its name, or kept', async () => {
  const made = await read(
    makeZip([
      { name: 'data/', content: '' },
      { name: 'data/day.csv', content: 'n,t\n1,x\n2,y\n' },
      { name: './data//night.CSV.gz', content: gzipSync('n\n3\n') },
      { name: 'data/log.jsonl', content: '{"a": 1}\n' },
      { name: 'data/Größe ☃.txt', content: 'as it is' },
      { name: 'more.zip', content: makeZip([CSV]) },
      { name: '__MACOSX/data/._day.csv', content: 'x' },
      { name: 'data/.DS_Store', content: 'x' },
    ]),
  );
  const found = Object.entries(made).map(([name, { kind, json }]) => [name, kind, json]);
  expect(found).toEqual([
    ['data/day.csv', 'table', { 'n integer': ['1', '2'], 't text': ['"x"', '"y"'] }],
    ['data/night.CSV.gz', 'table', { 'n integer': ['3'] }],
    ['data/log.jsonl', 'table', { 'a integer': ['1'] }],
    ['data/Größe ☃.txt', 'file', {}],
    ['more.zip', 'file', {}],
  ]);
  expect(readFileSync(made['data/Größe ☃.txt']?.path ?? '', 'utf8')).toBe('as it is');
});

test('a file whose name says that tabs separate its values is read so', async () => {
  const content = 'City\nAustin, TX\nDallas, TX\n';
  const made = await read(
    makeZip([
      { name: 'a.tsv', content },
      { name: 'b.TSV.gz', content: gzipSync(content) },
    ]),
  );
  const cities = { 'City text': ['"Austin, TX"', '"Dallas, TX"'] };
  expect(Object.entries(made).map(([name, { json }]) => [name, json])).toEqual([
    ['a.tsv', cities],
    ['b.TSV.gz', cities],
  ]);
});

test('its CSV files are read as was asked for, also where their error says to ask', async () => {
  const latin = Buffer.from('name;t\nZoë;1,5\n', 'latin1');
  const content = makeZip([
    { name: 'a.csv', content: latin },
    { name: 'b.tsv', content: 'name\tt\nx;y\t-\n' },
    { name: 'c.json', content: '[{"n": "-"}]' },
  ]);
  await expect(read(content)).rejects.toMatchObject({
    hint: 'Name the encoding with "encoding".',
  });
  const parameters = { encoding: 'latin-1', delimiter: ';', decimal: ',', nulls: ['-'] };
  const made = await read(content, undefined, parameters);
  expect(Object.entries(made).map(([name, { json }]) => [name, json])).toEqual([
    ['a.csv', { 'name text': ['"Zoë"'], 't number': ['1.5'] }],
    ['b.tsv', { 'name text': ['"x;y"'], 't text': ['null'] }],
    ['c.json', { 'n text': ['"-"'] }],
  ]);
});

test('what cannot be extracted whole and safely is an error that names it', async () => {
  const lies = (member: Partial<ZipMember>) => makeZip([CSV, { ...CSV, name: 'b', ...member }]);
  for (const [content, reason] of [
    [lies({ name: '../b.csv' }), '"../b.csv": its name is no path inside'],
    [lies({ name: '/etc/b.csv' }), '"/etc/b.csv": its name is no path inside'],
    [lies({ name: 'C:\\b.csv' }), '"C:/b.csv": its name is no path inside'],
    [lies({ name: 'x\\..\\..\\b.csv' }), 'its name is no path inside'],
    [lies({ name: 'a.csv' }), '"a.csv": there are two files of this name'],
    [lies({ name: './a.csv' }), '"a.csv": there are two files of this name'],
    [lies({ lies: { flags: 1 } }), '"b": it is encrypted'],
    [lies({ lies: { method: 14 } }), '"b": it is compressed by method 14'],
    [lies({ lies: { mode: 0o120777 }, content: '/etc/passwd' }), '"b": it is a symbolic link'],
    [lies({ lies: { crc: 1 } }), '"b": it is damaged: its checksum is another'],
    [lies({ lies: { size: 3 } }), '"b": it is damaged'],
    [lies({ lies: { size: 400 } }), '"b": it is damaged'],
    [lies({ name: 'b.csv', content: 'x,y\n1\n' }), '"b.csv": expected 2 values, found 1'],
    [lies({ name: 'b.npy', content: 'x' }), '"b.npy": the file is of no kind'],
    [makeZip([]), 'there is no file in it'],
    [
      makeZip(Array.from({ length: 1_001 }, (_, i) => ({ name: `f${i}`, content: '' }))),
      'more than 1,000 files',
    ],
  ] as const)
    await expect(read(content), reason).rejects.toThrow(reason);
  await expect(
    parseFile(directory.path, { parser: 'csv', content: makeZip([CSV]) }),
  ).rejects.toMatchObject({ hint: 'Use the parser "zip".' });
});

test('bombs are refused', async () => {
  const zeros = Buffer.alloc(20 << 20);
  await expect(read(makeZip([{ name: 'a', content: zeros }]))).rejects.toThrow('1,000 times');
  await expect(read(makeZip([CSV, { name: 'a', content: zeros }]), 1 << 20)).rejects.toThrow(
    'more than 1048576 bytes',
  );
  // Many members that are the same bytes of the archive.
  const member = { content: Buffer.alloc(900_000) };
  const shared = Array.from({ length: 400 }, (_, i) => ({
    ...member,
    name: `f${i}`,
    ...(i > 0 ? { sharesBytesOf: 0 } : {}),
  }));
  await expect(read(makeZip(shared))).rejects.toThrow('1,000 times');
  // Compressed once more in the archive.
  const twice = makeZip([{ name: 'a.csv.gz', content: gzipSync(zeros) }]);
  await expect(
    parseConfined(directory.path, { parser: 'zip', content: twice }),
  ).rejects.toMatchObject({ name: 'TableError' });
});

test('an archive that is cut or changed is an error or what it says', async () => {
  const whole = makeZip([
    { name: 'a.csv', content: 'n,t\n1,x\n2,y\n' },
    { name: 'b.txt', content: 'some text'.repeat(20) },
  ]);
  for (const content of damage(whole, { seed: 3, times: 60 }))
    await expectReadOrRefused(directory.path, { parser: 'zip', content });
});

describeUnless(missingReaders, 'archives of Python', () => {
  test('streamed ones, those of 64 bits, and those of numpy.savez', async () => {
    const path = join(directory.path, 'made.zip');
    const script = `
import sys, zipfile, numpy as np
class Pipe:
  def __init__(self, f): self.f = f
  def write(self, b): return self.f.write(b)
  def flush(self): pass
kind = sys.argv[2]
with open(sys.argv[1], 'wb') as f:
  if kind == 'npz': np.savez_compressed(f, grid=np.arange(6).reshape(2, 3), line=np.array([1.5, 2]))
  else:
    with zipfile.ZipFile(Pipe(f) if kind == 'pipe' else f, 'w', zipfile.ZIP_DEFLATED) as z:
      with z.open('a.csv', 'w', force_zip64=kind == '64') as m: m.write(b'n\\n1\\n')
print('null')`;
    for (const kind of ['pipe', '64']) {
      runReader(script, path, kind);
      expect((await read(readFileSync(path)))['a.csv']?.json).toEqual({ 'n integer': ['1'] });
    }
    runReader(script, path, 'npz');
    const made = await read(readFileSync(path));
    expect(made['line.npy']?.json).toEqual({ 'value number': ['1.5', '2'] });
    expect(made['grid.npy']).toMatchObject({ kind: 'array', rows: 6 });
  });
});
