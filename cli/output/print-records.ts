import { formatTable } from './table.ts';
import { write } from './write.ts';

/** A column of a table: its head, and a cell of it. */
export type Columns<T> = Record<string, (record: T) => string>;

/** Prints records: each as a line of JSON, or all as a table for people. */
export async function printRecords<T>(
  records: T[],
  { columns, json }: { columns: Columns<T>; json?: boolean },
): Promise<void> {
  if (json) {
    for (const record of records) await write(process.stdout, `${JSON.stringify(record)}\n`);
    return;
  }
  const cells = records.map(record => Object.values(columns).map(cell => cell(record)));
  await printTable(Object.keys(columns), cells);
}

/** Cells below the names of their columns, for people. */
export async function printTable(head: string[], cells: string[][]): Promise<void> {
  // A terminal that does not know its width says 0.
  const width = process.stdout.columns || undefined;
  await write(process.stdout, formatTable(head, cells, width));
}

/** What was done, of which people are told nothing. */
export async function printDone<T>(record: T, { json }: { json?: boolean }): Promise<void> {
  if (json) await printRecord(record, { json });
}

/** One record: as JSON, or as a sentence. */
export async function printRecord<T>(
  record: T,
  { sentence = '', json }: { sentence?: string; json?: boolean },
): Promise<void> {
  await write(process.stdout, json ? `${JSON.stringify(record)}\n` : `${sentence}\n`);
}
