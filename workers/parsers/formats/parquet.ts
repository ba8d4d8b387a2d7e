import { stat } from 'node:fs/promises';
import { checkNanoseconds } from '../parquet/check-nanoseconds.ts';
import { checkPages } from '../parquet/check-pages.ts';
import { checkValues } from '../parquet/check-values.ts';
import { type ColumnPlan, planColumns } from '../parquet/plan-columns.ts';
import { readFooter } from '../parquet/read-footer.ts';
import { damaged, refuseDamaged } from '../parquet/refuse-damaged.ts';
import { computeColumnStatistics } from '../table/column-statistics.ts';
import { countRows, openDuckdb, quoteName, readParquet, runLong } from '../table/duckdb.ts';
import { parquetStatement } from '../table/parquet-statement.ts';
import type { Reader } from '../table/protocol.ts';
import { writeSlices } from '../table/write-slices.ts';

/** Progress after each step. */
const CHECKED = 0.3;
const WRITTEN = 0.7;
/** Columns. DuckDB holds a page of each, up to a megabyte: 300 MB of 1,000 columns did not fit. */
const WIDE = 100;

/**
 * Rewrites a Parquet file in small row groups for paging, with the types of tables. Checks all values first: each is
 * kept exactly, or the file is refused.
 */
const parquet: Reader<'parquet'> = async (request, onProgress) => {
  const { input, output } = request;
  const { size: fileSize } = await stat(input);
  await checkPages(input);
  const connection = await openDuckdb(request, 1);
  const {
    rows: promised,
    columns: found,
    names,
    nanoseconds,
  } = await readFooter(connection, input);
  if (nanoseconds.length > 0) await checkNanoseconds(input, nanoseconds);
  const planned = planColumns(found, names);
  const { columns, bytes } = await checkValues(connection, {
    request,
    planned,
    onProgress: share => onProgress(share * CHECKED),
  });
  const size = {
    columns: columns.length,
    rows: promised,
    bytesPerRow: Math.max(fileSize, bytes) / Math.max(1, promised),
  };
  const write = (some: ColumnPlan[], path: string, onWritten: (share: number) => void) => {
    const select = `SELECT ${some.map(({ value, name }) => `${value} AS ${quoteName(name)}`).join(', ')} FROM ${readParquet(input)}`;
    const part = { ...size, columns: some.length };
    return runLong(connection, parquetStatement({ select, output: path }, part), onWritten);
  };
  const onWritten = (share: number) => onProgress(CHECKED + share * (WRITTEN - CHECKED));
  await refuseDamaged(
    columns.length > WIDE
      ? writeSlices(connection, {
          names: columns.map(({ name }) => name),
          output,
          size,
          onProgress: onWritten,
          writeSlice: ({ from, to, output: path }, onSlice) =>
            write(columns.slice(from, to), path, onSlice),
        })
      : write(columns, output, onWritten),
    input,
  );
  const rows = await countRows(connection, readParquet(output));
  if (rows !== promised)
    throw damaged(`it says that there are ${promised} rows, and there are ${rows}`);
  const statistics = await computeColumnStatistics(connection, {
    table: output,
    columns,
    onProgress: share => onProgress(WRITTEN + share * (1 - WRITTEN)),
  });
  return [{ name: '', kind: 'table', path: output, rows, columns: statistics }];
};

export default parquet;
