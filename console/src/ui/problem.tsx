import { WindlassError } from '@windlass/client';
import type { ComponentChildren } from 'preact';

/** What went wrong, what can be done, and the id by which the service's log tells more. */
export function Problem({ error, children }: { error: unknown; children?: ComponentChildren }) {
  const known = error instanceof WindlassError ? error : undefined;
  return (
    <div class="notice" data-look="error" role="alert">
      <strong>{known?.detail ?? (error instanceof Error ? error.message : String(error))}</strong>
      {known?.hint && <p>{known.hint}</p>}
      {known?.requestId && (
        <small>
          Request <code>{known.requestId}</code>
        </small>
      )}
      {children}
    </div>
  );
}
