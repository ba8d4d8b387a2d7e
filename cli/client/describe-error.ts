import type { WindlassError } from '../../clients/typescript/src/error.ts';

/** One line for people: what went wrong, and what to do. */
export function describeError({ detail, hint, requestId, status }: WindlassError): string {
  const next = status === 401 ? 'Log in again: windlass login URL.' : hint;
  const request = status >= 500 && requestId ? `(request ${requestId})` : undefined;
  return [detail, next, request].filter(Boolean).join(' ');
}
