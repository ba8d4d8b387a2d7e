import { WindlassError } from '@windlass/client';
import type { ComponentChildren } from 'preact';
import { adviceOf, describeRefusal } from './advice.ts';

/** What went wrong, what can be done, and the id by which the service's log tells more. */
export function Problem({ error, children }: { error: unknown; children?: ComponentChildren }) {
  const known = error instanceof WindlassError ? error : undefined;
  const advice = known && adviceOf(known);
  return (
    <div class="notice" data-look="error" role="alert">
      <strong>
        {known
          ? describeRefusal(known.problem)
          : error instanceof Error
            ? error.message
            : String(error)}
      </strong>
      {advice && <p>{advice}</p>}
      {known?.requestId && (
        <small>
          Request <code>{known.requestId}</code>
        </small>
      )}
      {children}
    </div>
  );
}
