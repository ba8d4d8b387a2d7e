/** The items of all pages of a list, of which `read` gets the one after this item. */
export async function readPages<T>(
  read: (query: { after?: string; limit: number }) => Promise<{ items: T[]; next: string | null }>,
): Promise<T[]> {
  const items: T[] = [];
  for (let after: string | undefined; ; ) {
    const page = await read({ after, limit: 1_000 });
    items.push(...page.items);
    if (page.next === null) return items;
    after = page.next;
  }
}
