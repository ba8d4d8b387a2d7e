import { open } from 'node:fs/promises';
import { type FileParserName, isParserName, PARSERS } from '../../shared/uploads/parsers.ts';
import { encodingOfMark, looksLikeUtf16 } from './csv/decode-text.ts';
import { recognizeFile } from './file-kind.ts';
import { TableError } from './table/protocol.ts';

/** Includes the user block of any HDF5 file seen so far. */
const HEAD_BYTES = 65_536 + 8;
/** A workbook may begin with another part than Excel's do, and netCDF-4 is HDF5. */
const ALSO_READ: Partial<Record<FileParserName, FileParserName>> = {
  xlsx: 'zip',
  netcdf: 'hdf5',
};

/** Throws TableError for a file that begins like another kind; names that kind and its parser. */
export async function checkKind(path: string, parser: FileParserName): Promise<void> {
  const head = await readHead(path);
  if (head.length === 0) throw new TableError({ reason: 'the file is empty' });
  if (parser === 'json' || parser === 'ndjson') refuseUtf16(head);
  const kind = recognizeFile(head);
  const { reads } = PARSERS[parser];
  const isRead =
    kind?.parser === parser || (kind?.parser !== undefined && kind.parser === ALSO_READ[parser]);
  if (kind ? isRead : reads === 'text') return;
  const other = kind?.parser && isParserName(kind.parser) ? kind.parser : undefined;
  throw new TableError({
    reason: `the file is ${kind?.name ?? 'of no kind that is known'}, not ${reads}`,
    hint: other
      ? `Use the parser "${other}".`
      : `Export it as ${reads === 'text' ? 'CSV' : reads.replace(/^an? /, '')}.`,
  });
}

/** RFC 8259 has JSON in UTF-8. */
function refuseUtf16(head: Buffer): void {
  if (encodingOfMark(head) !== 'utf-16' && !looksLikeUtf16(head)) return;
  throw new TableError({
    row: 1,
    reason: 'the file is UTF-16, and JSON is UTF-8',
    hint: 'Save it as UTF-8.',
  });
}

async function readHead(path: string): Promise<Buffer> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}
