import { open } from 'node:fs/promises';
import { TableError } from '../table/protocol.ts';
import { type Dialect, MAX_RECORD_BYTES, splitRecord, walkRecord } from './dialect.ts';
import type { Scan } from './record-scanner.ts';

/** The index of the record that names units. */
export const UNITS_RECORD = 1;
const MAX_UNIT_LENGTH = 100;

/** The units of columns; empty where a column has none. */
export async function readUnits(
  path: string,
  { dialect, scan }: { dialect: Dialect; scan: Scan },
): Promise<string[]> {
  const start = scan.offsets.get(UNITS_RECORD);
  if (start === undefined)
    throw new TableError({
      row: 2,
      reason: 'there is no second row, which "units" asks for',
      hint: 'Leave "units" out if the file has no row of units.',
    });
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(
      Buffer.alloc(MAX_RECORD_BYTES),
      0,
      MAX_RECORD_BYTES,
      start,
    );
    const bytes = buffer.subarray(0, bytesRead);
    const delimiter = dialect.delimiter.charCodeAt(0);
    const { end } = walkRecord(bytes, dialect.quote, byte => byte === delimiter);
    return splitRecord(bytes.subarray(0, end), dialect).map(unit =>
      // By characters: half of one could not be stored.
      Array.from(unit.trim()).slice(0, MAX_UNIT_LENGTH).join(''),
    );
  } finally {
    await file.close();
  }
}
