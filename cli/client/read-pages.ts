import { CommandError } from '../command-error.ts';

/** The items of all pages of a list, of which `read` gets the one after this item. */
export async function readPages<T>(
  read: (query: { after?: string; limit: number }) => Promise<{ items: T[]; next: string | null }>,
): Promise<T[]> {
  const items: T[] = [];
  for (let after: string | undefined; ; ) {
    const page = await read({ after, limit: 1_000 });
    // JSON, but of another program.
    if (!Array.isArray(page.items)) throw notTheService();
    items.push(...page.items);
    if (page.next === null) return items;
    after = page.next;
  }
}

export const notTheService = (): CommandError =>
  new CommandError('What answers there is not Windlass.', {
    hint: 'Is the address right, and no proxy before it that asks for a login?',
  });
