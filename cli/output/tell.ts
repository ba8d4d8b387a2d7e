import { printable } from './printable.ts';

/** Tells people one thing, on standard error. It may quote text of others. */
export function tell(said: string): void {
  process.stderr.write(`windlass: ${printable(said)}\n`);
}
