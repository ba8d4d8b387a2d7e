import type { AsyncBuffer, FileMetaData } from 'hyparquet';
import type { SchemaElement } from 'hyparquet/src/types.js';
import { ArrowWriter } from './arrow-writer.ts';
import { CsvWriter } from './csv-writer.ts';
import { checkSize, readColumns, rowGroupsOf } from './row-groups.ts';
import type { RowWriter } from './row-writer.ts';
import type { ExportRequest, TaskResult } from './thread-protocol.ts';

/** A piece ends with the row that reaches this. */
const PIECE_BYTES = 4 << 20;

/** A piece of some rows. The pieces of successive tasks, each from the row where the one before ended, make the whole. */
export async function exportRows(
  file: AsyncBuffer,
  metadata: FileMetaData,
  { format, columns, start, end, isFirst }: ExportRequest,
): Promise<TaskResult> {
  const writer: RowWriter = format === 'csv' ? new CsvWriter() : new ArrowWriter();
  const wanted = [...new Set(columns)];
  const elements = columns.map(name => elementOf(metadata, name));
  // Once something is sent an error can only cut the answer.
  if (isFirst) for (const { group } of rowGroupsOf(metadata, start, end)) checkSize(group, wanted);
  const pieces = isFirst ? [writer.begin(elements)] : [];
  let room = PIECE_BYTES;
  let next = start;
  for (const { group, first } of rowGroupsOf(metadata, start, end)) {
    const decoded = await readColumns({ file, metadata }, group, {
      columns: wanted,
      parsers: writer.parsers,
    });
    const written = writer.write(
      columns.map((name, i) => ({
        element: elements[i] as SchemaElement,
        values: decoded.get(name) ?? [],
      })),
      {
        from: Math.max(0, start - first),
        to: Math.min(Number(group.num_rows), end - first),
        room,
      },
    );
    pieces.push(written.bytes);
    room -= written.bytes.length;
    next = first + written.next;
    if (room <= 0 || next < first + Number(group.num_rows)) break;
  }
  if (next >= end) pieces.push(writer.end);
  return { bytes: concat(pieces), next };
}

function elementOf({ schema }: FileMetaData, name: string): SchemaElement {
  const found = schema.find(element => element.type && element.name === name);
  if (!found) throw new Error(`the table has no column ${name}`);
  return found;
}

/** In a buffer of its own, which can be transferred. */
function concat(pieces: Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
