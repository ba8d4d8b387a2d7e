import { stat } from 'node:fs/promises';
import { type Cell, makeCellTable } from '../cells/make-cell-table.ts';
import { MAX_COLUMNS } from '../csv/dialect.ts';
import { type FileRequest, type MadeFile, TableError } from '../table/protocol.ts';
import { parseRecord } from './parse-record.ts';
import type { RecordText } from './split-records.ts';

/** Progress after the names of all columns are known. */
const NAMED = 0.2;

/**
 * Makes a table of records, with a column for each name, by first appearance. Reads the file twice: for the names, then
 * for the values.
 */
export async function makeRecordTable(
  request: FileRequest,
  split: (path: string) => AsyncIterable<RecordText>,
  onProgress: (share: number) => void,
): Promise<MadeFile[]> {
  const { size } = await stat(request.input);
  const names = new Map<string, number>();
  let read = 0;
  for await (const { text, row } of split(request.input)) {
    for (const name of parseRecord(text, row).keys())
      if (!names.has(name)) names.set(name, names.size);
    if (names.size > MAX_COLUMNS)
      throw new TableError({
        row,
        reason: `there are more than ${MAX_COLUMNS.toLocaleString('en')} columns, which is the limit`,
      });
    read += text.length;
    onProgress((read / size) * NAMED);
  }
  if (names.size === 0) throw new TableError({ reason: 'there is no record with a value' });
  async function* rows(): AsyncGenerator<Cell[]> {
    for await (const { text, row } of split(request.input)) {
      const cells: Cell[] = Array.from({ length: names.size }, () => null);
      for (const [name, cell] of parseRecord(text, row)) cells[names.get(name) as number] = cell;
      yield cells;
    }
  }
  const table = await makeCellTable(request, {
    names: [...names.keys()],
    rows: rows(),
    onProgress: share => onProgress(NAMED + share * (1 - NAMED)),
  });
  return [{ name: '', kind: 'table', path: request.output, ...table }];
}
