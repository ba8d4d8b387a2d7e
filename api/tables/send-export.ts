import { waitForDrain } from '../../shared/process/wait-for-drain.ts';
import { setAttachment } from '../http/attachment.ts';
import type { Exchange } from '../http/exchange.ts';
import type { ReadRequest, TableReader } from './table-reader.ts';
import type { ExportFormat, RowRange, TableFile } from './thread-protocol.ts';

/** The most rows of one answer. */
export const MAX_EXPORTED_ROWS = 1_000_000;
/** Memory for a piece that waits to be sent. */
const RESERVED_BYTES = 8 << 20;

/** The media types of rows; the first one is the default. */
export const ROW_TYPES = {
  'application/json': 'json',
  'text/csv': 'csv',
  'application/vnd.apache.arrow.stream': 'arrow',
} as const satisfies Record<string, 'json' | ExportFormat>;

const CONTENT_TYPES = {
  csv: 'text/csv; charset=utf-8; header=present',
  arrow: 'application/vnd.apache.arrow.stream',
} as const;

/** The format that the client prefers; JSON where it accepts none of them. */
export function negotiateFormat({ req, res }: Exchange): 'json' | ExportFormat {
  res.vary('Accept');
  const type = req.accepts(Object.keys(ROW_TYPES)) as keyof typeof ROW_TYPES | false;
  return type ? ROW_TYPES[type] : 'json';
}

export interface Export {
  reader: TableReader;
  file: TableFile;
  format: ExportFormat;
  rows: RowRange;
  reading: ReadRequest;
  /** The name for who saves it, without its ending. */
  name: string;
}

/**
 * Streams rows, piece by piece: a slow client holds one piece, and no slot of the reader. The first piece is made
 * before the status is sent; a later error cuts the chunked answer, so that the client notices.
 */
export async function sendExport(
  { req, res }: Exchange,
  { reader, file, format, rows, reading, name }: Export,
): Promise<void> {
  await reading.reserveMemory(RESERVED_BYTES);
  // That is for all pieces.
  const piecewise = { ...reading, reserveMemory: async () => {} };
  for (let start = rows.start, isFirst = true; isFirst || start < rows.end; isFirst = false) {
    const task = { kind: 'export' as const, format, ...rows, start, isFirst };
    const { bytes, next = rows.end } = await reader.read(file, task, piecewise);
    if (isFirst) {
      setAttachment(res, `${name}.${format}`);
      res.set('Content-Type', CONTENT_TYPES[format]);
      if (req.method === 'HEAD') return void res.end();
    }
    if (!res.write(bytes) && !(await waitForDrain(res))) return;
    start = next;
  }
  res.end();
}
