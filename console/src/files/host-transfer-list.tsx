import {
  clearTransfers,
  dropTransfers,
  type HostFileTransfer,
  sendAgain,
  useHostTransfers,
} from '../service/host-transfers.ts';
import { join } from '../service/paths.ts';
import { Button } from '../ui/button.tsx';
import { formatBytes } from '../ui/format-bytes.ts';
import { Problem } from '../ui/problem.tsx';
import { Time } from '../ui/time.tsx';
import { findEntry, type Listing } from './entries.ts';

const WORDS: Record<HostFileTransfer['state'], string> = {
  waits: 'waits',
  sends: 'sending …',
  done: 'sent',
  exists: 'is there already',
  failed: 'was not sent',
};

/** What became of the files that are sent to a host. */
export function HostTransferList({ sid, listing }: { sid: string; listing: Listing | undefined }) {
  const transfers = useHostTransfers(sid);
  if (transfers.length === 0) return null;
  const count = (...states: HostFileTransfer['state'][]) =>
    transfers.filter(({ state }) => states.includes(state)).length;
  const existing = transfers.filter(({ state }) => state === 'exists');
  return (
    <section class="card" aria-label="Files that are sent">
      <div class="card-head">
        <h2>
          <span role="status">
            {count('waits', 'sends') > 0
              ? `${count('done')} of ${transfers.length} files are sent`
              : `${count('done')} ${count('done') === 1 ? 'file' : 'files'} sent`}
            {existing.length > 0 && `, ${existing.length} there already`}
          </span>
        </h2>
        <div class="row">
          {existing.length > 1 && (
            <>
              <Button size="small" onClick={() => sendAgain(existing, { replaces: true })}>
                Replace all {existing.length}
              </Button>
              <Button size="small" look="quiet" onClick={() => dropTransfers(existing)}>
                Keep all that are there
              </Button>
            </>
          )}
          {count('done', 'failed') > 0 && (
            <Button size="small" look="quiet" onClick={() => clearTransfers(sid)}>
              Clear what is over
            </Button>
          )}
        </div>
      </div>
      <ul class="sendings">
        {transfers.map(transfer => (
          <HostTransferRow key={transfer.key} transfer={transfer} listing={listing} />
        ))}
      </ul>
    </section>
  );
}

function HostTransferRow({
  transfer,
  listing,
}: {
  transfer: HostFileTransfer;
  listing: Listing | undefined;
}) {
  const { name, file, state, path, sent, error } = transfer;
  const isHere = listing !== undefined && join(listing.path, name) === path;
  const there = isHere && state === 'exists' ? findEntry(listing, name) : undefined;
  return (
    <li data-state={state}>
      <span class="row">
        <strong class="ellipsis" title={path}>
          {name}
        </strong>
        <span class="grow muted">
          {state === 'sends' && sent < file.size && `${formatBytes(sent)} of `}
          {formatBytes(file.size)}, {/* Its host has not taken all of it yet. */}
          {state === 'sends' && sent >= file.size ? 'writing it there …' : WORDS[state]}
          {there && (
            <>
              : {formatBytes(there.size)}, changed <Time at={there.time} />
            </>
          )}
        </span>
        {state === 'exists' && (
          <>
            <Button size="small" onClick={() => sendAgain([transfer], { replaces: true })}>
              Replace it
            </Button>
            <Button size="small" look="quiet" onClick={() => dropTransfers([transfer])}>
              Keep that one
            </Button>
          </>
        )}
        {state === 'failed' && (
          <Button size="small" onClick={() => sendAgain([transfer])}>
            Send again
          </Button>
        )}
        {(state === 'waits' || state === 'sends') && (
          <Button size="small" look="quiet" onClick={() => dropTransfers([transfer])}>
            Stop
          </Button>
        )}
      </span>
      {state === 'sends' && (
        <progress aria-label={`Sent of ${name}`} max={Math.max(1, file.size)} value={sent} />
      )}
      {state === 'failed' && <Problem error={error} />}
    </li>
  );
}
