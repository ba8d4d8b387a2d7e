import { useEffect, useRef, useState } from 'preact/hooks';
import { artifactPath, downloadName } from '../service/models.ts';
import { apiPath } from '../service/place.ts';
import type { View } from '../service/table-view.ts';
import { makeView, readCsv, type TableKey } from '../service/tables.ts';
import { Button } from '../ui/button.tsx';
import { DownloadIcon } from '../ui/icons.tsx';
import { formatCount } from '../ui/numbers.ts';
import { Problem } from '../ui/problem.tsx';

interface DownloadsProps {
  table: TableKey;
  view: View;
  /** Rows of the view. */
  total: number | undefined;
}

/** The rows that are shown, as CSV and as Parquet. */
export function Downloads({ table, view, total }: DownloadsProps) {
  const [read, setRead] = useState<number>();
  const [error, setError] = useState<unknown>();
  const stop = useRef<AbortController>();
  useEffect(() => () => stop.current?.abort(), []);
  const artifact = { aid: table.aid, type: 'table' as const };
  const download = async () => {
    stop.current = new AbortController();
    const { signal } = stop.current;
    setError(undefined);
    setRead(0);
    try {
      const csv = await readCsv(table, view, { onProgress: setRead, signal });
      saveAs(csv, downloadName(artifact).replace(/(?:\.csv)?\.parquet$/, '.csv'));
    } catch (problem) {
      if (!signal.aborted) setError(problem);
    }
    setRead(undefined);
  };
  const asked = new URLSearchParams([
    ...view.sort.map(each => ['sort', each]),
    ...view.filter.map(each => ['filter', each]),
  ]);
  const address = apiPath(artifactPath(table.mid, artifact)) + (asked.size > 0 ? `?${asked}` : '');
  /** A view that is not there yet would be saved as a job. */
  const saveView = async (link: HTMLAnchorElement) => {
    setError(undefined);
    try {
      await makeView({ mid: table.mid, aid: table.aid, ...view });
      Object.assign(document.createElement('a'), {
        href: address,
        download: link.download,
      }).click();
    } catch (problem) {
      setError(problem);
    }
  };
  return (
    <>
      {read === undefined ? (
        <Button onClick={download}>
          <DownloadIcon />
          CSV
        </Button>
      ) : (
        <Button onClick={() => stop.current?.abort()}>
          Stop at {formatCount(read)} of {total === undefined ? '…' : formatCount(total)} rows
        </Button>
      )}
      <a
        class="button"
        href={address}
        download={downloadName(artifact)}
        onClick={event => {
          if (asked.size === 0) return;
          event.preventDefault();
          saveView(event.currentTarget);
        }}
      >
        <DownloadIcon />
        Parquet
      </a>
      {error !== undefined && <Problem error={error} />}
    </>
  );
}

/** The browser reads on for a while from a link that was clicked. */
const KEPT_MS = 60_000;

function saveAs(blob: Blob, name: string): void {
  const address = URL.createObjectURL(blob);
  Object.assign(document.createElement('a'), { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), KEPT_MS);
}
