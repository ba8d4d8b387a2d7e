import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Cell, makeCellTable } from '../cells/make-cell-table.ts';
import { looksLikeName } from '../csv/header.ts';
import { boundExpansion } from '../expand/bound-expansion.ts';
import { type FileRequest, type MadeFile, type Reader, TableError } from '../table/protocol.ts';
import { openWorkbook, type Sheet, type Workbook } from '../xlsx/open-workbook.ts';
import { readSheet, type SheetRow } from '../xlsx/read-sheet.ts';
import { openZip } from '../zip/open-zip.ts';

/** Makes a table of each sheet that has a value. */
const xlsx: Reader<'xlsx'> = async (request, onProgress) => {
  const { size } = await stat(request.input);
  const bound = boundExpansion({ compressed: size, limit: request.expanded });
  const zip = await openZip(request.input, bound);
  try {
    const book = await openWorkbook(zip);
    const made: MadeFile[] = [];
    for (const [i, sheet] of book.sheets.entries()) {
      if (made.some(({ name }) => name === sheet.name))
        throw new TableError({ reason: `there are two sheets ${JSON.stringify(sheet.name)}` });
      const output = join(request.scratch, `sheet-${i}.parquet`);
      const onSheet = (share: number) => onProgress((i + share) / book.sheets.length);
      const table = await makeSheetTable(
        { ...request, output },
        { sheet, book, onProgress: onSheet },
      );
      if (table) made.push({ ...table, name: sheet.name });
      await rm(`${output}.csv`, { force: true });
    }
    if (made.length === 0) throw new TableError({ reason: 'there is no sheet with a value' });
    return made;
  } finally {
    zip.close();
  }
};

export default xlsx;

const DATE = /^(\d{4}-\d\d-\d\d(T|$)|\d\d:\d\d:\d\d)/;

interface Reading {
  sheet: Sheet;
  book: Workbook;
  onProgress(share: number): void;
}

async function makeSheetTable(
  request: FileRequest<'xlsx'>,
  { sheet, book, onProgress }: Reading,
): Promise<MadeFile | undefined> {
  const { columns, first, looksLikeNames, count } = await look(sheet, book);
  if (!first) return undefined;
  const hasHeader = request.parameters.header ?? (looksLikeNames && count > 1);
  const names = columns.map(column => (hasHeader ? (first.cells.get(column)?.text ?? '') : ''));
  async function* rows(): AsyncGenerator<Cell[]> {
    let isFirst = true;
    for await (const { cells } of readSheet(sheet, book)) {
      if (!(isFirst && hasHeader)) yield columns.map(column => cells.get(column) ?? null);
      isFirst = false;
    }
  }
  const table = await makeCellTable(request, { names, rows: rows(), onProgress });
  return { name: '', kind: 'table', path: request.output, ...table };
}

interface Look {
  /** Those with a value. */
  columns: number[];
  first: SheetRow | undefined;
  /** Whether the first row holds texts that do not all stand for values. */
  looksLikeNames: boolean;
  /** Rows. */
  count: number;
}

async function look(sheet: Sheet, book: Workbook): Promise<Look> {
  const used = new Set<number>();
  let first: SheetRow | undefined;
  let count = 0;
  for await (const row of readSheet(sheet, book)) {
    first ??= row;
    count++;
    for (const column of row.cells.keys()) used.add(column);
  }
  const cells = [...(first?.cells.values() ?? [])];
  return {
    columns: [...used].sort((a, b) => a - b),
    first,
    count,
    looksLikeNames:
      cells.every(({ kind, text }) => kind === 'text' && !DATE.test(text)) &&
      cells.some(({ text }) => looksLikeName(text)),
  };
}
