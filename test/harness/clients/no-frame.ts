import { expect } from 'vitest';

/** Whatever else a page may do, no other page shows it in a frame. */
const FRAMES = /(^|; )frame-ancestors 'none'(;|$)/;

/** Holds any answer of the service against what keeps it from a page of another site. `what` names it where it fails. */
export function expectNoFrame({ headers }: Pick<Response, 'headers'>, what?: string): void {
  expect(headers.get('X-Content-Type-Options'), what).toBe('nosniff');
  expect(headers.get('Content-Security-Policy'), what).toMatch(FRAMES);
}
