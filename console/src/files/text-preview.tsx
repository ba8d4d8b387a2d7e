import { WindlassError } from '@windlass/client';
import { useMemo } from 'preact/hooks';
import { useHead } from '../service/files.ts';
import { extensionOf } from '../service/paths.ts';
import { formatCount } from '../ui/numbers.ts';
import { Problem } from '../ui/problem.tsx';
import { Wait } from '../ui/wait.tsx';
import type { Entry } from './entries.ts';
import { NotShown } from './not-shown.tsx';
import { readRows } from './read-rows.ts';
import { findSeparator, readText } from './read-text.ts';
import { COLUMNS, ROWS, RowsTable } from './rows-table.tsx';

const TEXT_BYTES = 64 << 10;
/** What the parsers of uploads read, and this page does not. */
const TABLES = ['xlsx', 'h5', 'hdf5', 'nc', 'npy', 'npz'];

/** The beginning of a file: the first rows of a table, or text. */
export function TextPreview({ sid, path, entry }: { sid: string; path: string; entry: Entry }) {
  const { size, time, name } = entry;
  const { data, error } = useHead(sid, path, {
    most: TEXT_BYTES,
    isWanted: size > 0,
    version: `${size} ${time}`,
  });
  const text = useMemo(() => data && readText(data), [data]);
  if (size === 0) return <p class="card-body muted">It is empty.</p>;
  if (error)
    return (
      <Problem error={error}>
        <Why error={error} name={name} />
      </Problem>
    );
  if (!data) return <Wait>Reading the beginning …</Wait>;
  if (text === undefined && TABLES.includes(extensionOf(name)))
    return <NotShown>Files of this kind are not looked into here.</NotShown>;
  if (text === undefined)
    return <p class="card-body muted">It is no text. Download it to look into it.</p>;
  const isCut = size > data.length;
  const isTable = ['csv', 'tsv'].includes(extensionOf(name));
  const options = { separator: findSeparator(text), most: ROWS + 1, isCut };
  const found = isTable ? readRows(text, options) : [];
  // A first line that is longer than what was read has no row.
  const rows = found.length > 0 ? found : undefined;
  const isPart = isCut || (rows && rows.length > ROWS);
  const columns = rows?.[0]?.length ?? 0;
  return (
    <>
      {rows ? (
        <RowsTable head={rows[0] ?? []} rows={rows.slice(1)} />
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it is scrolled by keys, too.
        <section class="preview-text" aria-label="Text" tabIndex={0}>
          <pre>{text}</pre>
        </section>
      )}
      {(isPart || columns > COLUMNS) && (
        <p class="preview-end muted">
          {isPart && (rows ? `The first ${rows.length - 1} rows. ` : 'The first 64 KiB. ')}
          {columns > COLUMNS && `The first ${COLUMNS} of ${formatCount(columns)} columns. `}
          Download it to see all of it.
        </p>
      )}
    </>
  );
}

/** What the service's words leave open about an entry that was listed. */
function Why({ error, name }: { error: unknown; name: string }) {
  if (!(error instanceof WindlassError) || error.code !== 'not_found') return null;
  if (name.includes('\ufffd'))
    return <p>Its name is not UTF-8: give it another one on the host, and it can be read here.</p>;
  return <p>It may be a link that leads nowhere, or be gone since it was listed.</p>;
}
