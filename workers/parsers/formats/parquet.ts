import { stat } from 'node:fs/promises';
import { checkNanoseconds } from '../parquet/check-nanoseconds.ts';
import { checkValues } from '../parquet/check-values.ts';
import { planColumns } from '../parquet/plan-columns.ts';
import { readFooter } from '../parquet/read-footer.ts';
import { damaged, refuseDamaged } from '../parquet/refuse-damaged.ts';
import { computeColumnStatistics } from '../table/column-statistics.ts';
import { countRows, openDuckdb, quoteName, readParquet, runLong } from '../table/duckdb.ts';
import { parquetStatement } from '../table/parquet-statement.ts';
import type { Reader } from '../table/protocol.ts';

/** Progress after each step. */
const CHECKED = 0.3;
const WRITTEN = 0.7;

/**
 * Writes a Parquet file anew, in the small row groups that pages are read from, with the types of tables. All its values are
 * looked at before: each is kept exactly, or the file is refused.
 */
const parquet: Reader<'parquet'> = async (request, onProgress) => {
  const { input, output } = request;
  const { size } = await stat(input);
  const connection = await openDuckdb(request, 1);
  const {
    rows: promised,
    columns: found,
    names,
    nanoseconds,
  } = await readFooter(connection, input);
  if (nanoseconds.length > 0) await checkNanoseconds({ input, names: nanoseconds });
  const planned = planColumns(found, names);
  const { columns, bytes } = await checkValues(connection, {
    ...{ request, planned },
    onProgress: share => onProgress(share * CHECKED),
  });
  const select = `SELECT ${columns.map(({ value, name }) => `${value} AS ${quoteName(name)}`).join(', ')} FROM ${readParquet(input)}`;
  const statement = parquetStatement(
    { select, output },
    {
      columns: columns.length,
      rows: promised,
      bytesPerRow: Math.max(size, bytes) / Math.max(1, promised),
    },
  );
  await refuseDamaged(
    runLong(connection, statement, share => onProgress(CHECKED + share * (WRITTEN - CHECKED))),
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
