import { useState } from 'preact/hooks';
import { isRowError, RowErrors } from '../projects/row-errors.tsx';
import {
  addUpload,
  isKeptElsewhere,
  pauseUpload,
  removeUpload,
  resumeUpload,
} from '../service/upload-transfers.ts';
import type { UploadTransfer } from '../service/uploads.ts';
import { Button } from '../ui/button.tsx';
import { formatBytes } from '../ui/format-bytes.ts';
import { Problem } from '../ui/problem.tsx';
import { GiveUp } from './give-up.tsx';
import { TextAround } from './text-around.tsx';

const WORDS: Record<UploadTransfer['state'], string> = {
  waits: 'Waits for the others',
  sends: 'Sending …',
  paused: 'Paused',
  parses: 'Reading …',
  done: 'Stored',
  failed: 'Failed',
};
const STATES: Record<UploadTransfer['state'], string> = {
  waits: 'queued',
  sends: 'running',
  paused: 'queued',
  parses: 'running',
  done: 'succeeded',
  failed: 'failed',
};
/** The most names of an upload that are shown. */
const NAMES = 3;

/** The uploads of this page: how far they are, and what became of them. */
export function UploadTransferList({ list }: { list: UploadTransfer[] }) {
  if (list.length === 0) return null;
  return (
    <section class="card" aria-label="Uploads of this page">
      <ul class="parses">
        {list.map(transfer => (
          <UploadTransferItem key={transfer.key} transfer={transfer} />
        ))}
      </ul>
    </section>
  );
}

function UploadTransferItem({ transfer }: { transfer: UploadTransfer }) {
  const { key, uid, aids, state, sent, total, error, upload } = transfer;
  const name = namesOf(aids);
  const isEnded = isKeptElsewhere(transfer);
  const remove = () => removeUpload(transfer);
  // What could not be read is not read by sending it again.
  const canResume = state === 'paused' || (state === 'failed' && !isEnded);
  return (
    <li>
      <div class="row">
        <span class="badge" data-state={STATES[state]} role="status">
          {WORDS[state]}
        </span>
        <strong class="grow ellipsis" title={name}>
          {name}
        </strong>
        <span class="muted numbers">
          {sent < total ? `${formatBytes(sent)} of ${formatBytes(total)}` : formatBytes(total)}
        </span>
        {(state === 'sends' || state === 'waits') && (
          <Button size="small" aria-label={`Pause ${name}`} onClick={() => pauseUpload(key)}>
            Pause
          </Button>
        )}
        {canResume && (
          <Button size="small" aria-label={`Go on with ${name}`} onClick={() => resumeUpload(key)}>
            Go on
          </Button>
        )}
        {isEnded && (
          <Button size="small" repeats aria-label={`Clear ${name}`} onClick={remove}>
            Clear
          </Button>
        )}
        {!isEnded && state !== 'parses' && (
          <GiveUp names={name} arrived={uid === undefined ? undefined : sent} onGiveUp={remove} />
        )}
      </div>
      {(state === 'sends' || state === 'paused') && (
        <progress aria-label={`Sent of ${name}`} max={Math.max(1, total)} value={sent} />
      )}
      {upload?.error ? (
        <RowErrors
          message={upload.error.message}
          errors={upload.error.errors}
          aids={aids}
          around={({ file = 0, row, ...rest }) => {
            const source = transfer.files[file];
            if (!source || row === undefined) return null;
            return (
              <TextAround
                file={source}
                error={{ ...rest, file, row }}
                parameters={transfer.parameters}
              />
            );
          }}
        />
      ) : (
        state === 'failed' && <Problem error={error} />
      )}
      {upload?.error && <Others transfer={transfer} errors={upload.error.errors} />}
    </li>
  );
}

/** One bad file keeps the others of its upload out. */
function Others({ transfer, errors }: { transfer: UploadTransfer; errors: unknown[] }) {
  const { mid, parser, aids, files, parameters } = transfer;
  const [areSent, setSent] = useState(false);
  const bad = new Set(errors.map(error => isRowError(error) && error.file));
  const others = aids.flatMap((aid, n) => {
    const file = files[n];
    return file && !bad.has(n) ? [{ aid, file }] : [];
  });
  if (areSent || aids.length < 2) return null;
  const sendOthers = () => {
    setSent(true);
    addUpload({
      mid,
      parser,
      aids: others.map(({ aid }) => aid),
      files: others.map(({ file }) => file),
      parameters,
    });
  };
  return (
    <div class="row">
      <strong>None of the {aids.length} files was stored.</strong>
      {others.length > 0 && others.length < aids.length && (
        <Button size="small" onClick={sendOthers}>
          Upload {others.length === 1 ? 'the other one' : `the other ${others.length}`}
        </Button>
      )}
    </div>
  );
}

function namesOf(aids: string[]): string {
  const rest = aids.length - NAMES;
  return `${aids.slice(0, NAMES).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
}
