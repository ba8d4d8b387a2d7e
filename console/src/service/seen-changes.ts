import { WindlassError } from '@windlass/client';
import type { Tagged } from './tagged.ts';

/** A record as it was when a form began to change it, and what the form makes of its members. */
export interface FormChange<Changes> {
  before: Changes;
  after: Partial<Changes>;
}

/**
 * Stores the members that differ. Throws where somebody else has changed one of them since, so that it is not replaced unseen.
 * Other members that were changed meanwhile stay.
 */
export async function storeChanges<Changes extends object>(
  { before, after }: FormChange<Changes>,
  read: () => Promise<Tagged<Partial<Changes>>>,
  write: (changes: Partial<Changes>, tag: string) => Promise<unknown>,
): Promise<void> {
  const names = (Object.keys(after) as (keyof Changes & string)[]).filter(
    name => !isSame(after[name], before[name]),
  );
  const { record, tag } = await read();
  // An earlier try of this form may have stored the same value, and its answer been lost.
  for (const name of names)
    if (!isSame(record[name], before[name]) && !isSame(record[name], after[name]))
      throw new WindlassError({
        code: 'changed',
        detail: `Somebody else has changed its ${name} meanwhile.`,
        hint: 'Take back what you typed, or open it again, to see what is stored now.',
      });
  const changes: Partial<Changes> = {};
  for (const name of names) changes[name] = after[name];
  await write(changes, tag);
}

/** Compares values as JSON. */
const isSame = (one: unknown, other: unknown): boolean =>
  JSON.stringify(one) === JSON.stringify(other);
