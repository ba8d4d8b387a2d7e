import { useQuery } from '@tanstack/preact-query';
import { formatCount } from '../ui/numbers.ts';
import { Wait } from '../ui/wait.tsx';
import type { Entry } from './entries.ts';
import { NotShown } from './not-shown.tsx';
import { readParquet } from './read-parquet.ts';
import { COLUMNS, ROWS, RowsTable } from './rows-table.tsx';

/** The first rows of a Parquet file, and how many there are. */
export function ParquetPreview({ sid, path, entry }: { sid: string; path: string; entry: Entry }) {
  const { size, time } = entry;
  const { data, error } = useQuery({
    queryKey: ['parquet', sid, path, size, time],
    queryFn: ({ signal }) =>
      readParquet({ sid, path, size }, { most: ROWS, columns: COLUMNS, signal }),
    staleTime: 60_000,
    gcTime: 60_000,
  });
  if (error) return <NotShown>It could not be read: {error.message.replace(/\.$/, '')}.</NotShown>;
  if (!data) return <Wait>Reading the first rows …</Wait>;
  const { rowCount, columnCount, columns, rows, problem } = data;
  return (
    <>
      {problem === undefined ? (
        <RowsTable head={columns} rows={rows} />
      ) : (
        <NotShown>
          {problem} Its columns: {columns.join(', ')}.
        </NotShown>
      )}
      <p class="preview-end muted">
        {rows.length > 0 && rows.length < rowCount && `The first ${rows.length} of `}
        {formatCount(rowCount)} rows, {formatCount(columnCount)} columns.
      </p>
    </>
  );
}
