import type { Parse } from '../service/models.ts';
import { formatCount } from '../ui/numbers.ts';
import { Ago } from '../ui/time.tsx';
import { RowErrors } from './row-errors.tsx';

const WORDS: Record<Parse['state'], string> = {
  parsing: 'Reading …',
  done: 'Read',
  failed: 'Failed',
};
const STATES = { parsing: 'running', done: 'succeeded', failed: 'failed' };
/** The most names of an upload that are shown. */
const NAMES = 5;

/** What became of the uploads into a model, the latest first. */
export function Parses({ parses }: { parses: Parse[] }) {
  if (parses.length === 0) return null;
  return (
    <section class="card" aria-label="Uploads">
      <div class="card-head">
        <h2>What was uploaded</h2>
      </div>
      <ul class="parses">
        {parses.map((parse, n) => (
          <li key={`${parse.finished} ${n}`}>
            <div class="row">
              <span class="badge" data-state={STATES[parse.state]}>
                {WORDS[parse.state]}
              </span>
              <strong class="grow break">{namesOf(parse.aids)}</strong>
              <span class="muted">
                {parse.parser}
                {parse.finished && (
                  <>
                    , <Ago at={parse.finished} />
                  </>
                )}
              </span>
            </div>
            {parse.error && (
              <RowErrors
                message={parse.error.message}
                errors={parse.error.errors}
                aids={parse.aids}
              />
            )}
            {parse.skipped && parse.skipped.count > 0 && (
              <details>
                <summary>{formatCount(parse.skipped.count)} were left out</summary>
                <RowErrors errors={parse.skipped.errors} aids={parse.aids} />
              </details>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

function namesOf(aids: string[]): string {
  const rest = aids.length - NAMES;
  return `${aids.slice(0, NAMES).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
}
