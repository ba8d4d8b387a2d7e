import { afterAll, expect, test } from 'vitest';
import type { FileParserName } from '../../shared/uploads/parsers.ts';
import { parseFile } from '../harness/clients/parsed-file.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';

const directory = makeTempDir('file-kinds');
afterAll(() => directory.remove());

const parse = (parser: FileParserName, head: string) =>
  parseFile(directory.path, { parser, content: Buffer.from(head, 'latin1') });

test('a file of another kind is named as such', async () => {
  for (const [head, name] of [
    ['\x89HDF\r\n\x1a\n\0\0', 'an HDF5 file'],
    [
      'PK\x03\x04\x14\0\x06\0\x08\0\0\0!\0\0\0\0\0\0\0\0\0\0\0\0\0\x13\0\x08\x02[Content_Types].xml',
      'an XLSX workbook',
    ],
    ['PK\x03\x04\x14\0\0\0\0\0', 'a ZIP archive'],
    ['\x89PNG\r\n\x1a\n\0', 'a PNG image'],
    ['\xff\xd8\xff\xe0\0\x10JFIF', 'a JPEG image'],
    ['PAR1\x15\0', 'a Parquet file'],
    ['\x93NUMPY\x01\0', 'a NumPy file'],
  ] as const)
    await expect(parse('csv', head)).rejects.toThrow(`the file is ${name}, not text`);
});

test('a text may begin as another kind of file does', async () => {
  const namesOf = async (csv: string) => (await parse('csv', csv))['']?.columns?.map(c => c.name);
  expect(await namesOf('PARENT_ID,NAME\r\n1,x\r\n')).toEqual(['PARENT_ID', 'NAME']);
  expect(await namesOf('PAR1\tPAR2\tRESULT\n1\t2\t3\n')).toEqual(['PAR1', 'PAR2', 'RESULT']);
  expect(await namesOf('BZh,GIF8\n1,2\n')).toEqual(['BZh', 'GIF8']);
  await expect(parse('csv', '%PDF-1.4\n1 0 obj\n')).rejects.toThrow('a PDF document');
});

test('the parser that reads a file of another kind is named', async () => {
  await expect(parse('json', 'PAR1\x15\0')).rejects.toMatchObject({
    message: 'the file is a Parquet file, not text',
    hint: 'Use the parser "parquet".',
  });
  await expect(parse('parquet', 'a,b\n1,2\n')).rejects.toThrow(
    'the file is of no kind that is known, not a Parquet file',
  );
  await expect(parse('parquet', '')).rejects.toThrow('the file is empty');
});
