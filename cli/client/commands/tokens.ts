import { unwrap } from '../../../clients/typescript/src/api.ts';
import { printDone, printRecord, printRecords } from '../../output/print-records.ts';
import { formatAge, formatUsed } from '../../output/table.ts';
import { connect, connectByPassword, type PasswordOptions } from '../connect.ts';
import { readPages } from '../read-pages.ts';

/** `windlass token list` */
export async function listTokens({ json }: { json?: boolean }): Promise<void> {
  const { api } = await connect();
  const tokens = await readPages(query =>
    unwrap(api.GET('/api/users/-/tokens', { params: { query } })),
  );
  await printRecords(tokens, {
    columns: {
      ID: ({ id }) => id,
      SCOPE: ({ scope }) => scope,
      AGE: ({ created }) => formatAge(created),
      USED: ({ used, created }) => (used ? formatUsed(used, created) : 'never'),
      EXPIRES: ({ expires }) => expires ?? 'never',
      NAME: ({ name }) => name,
    },
    json,
  });
}

/** `windlass token create`: prints it, once. */
export async function createToken(
  name: string,
  {
    scope,
    expires,
    json,
    ...options
  }: PasswordOptions & { scope: 'read' | 'write'; expires?: string; json?: boolean },
): Promise<void> {
  const { api } = await connectByPassword(options);
  const body = { name, scope, expires };
  const made = await unwrap(api.POST('/api/users/-/tokens', { body }));
  await printRecord(made, { sentence: made.token, json });
}

/** `windlass token delete` */
export async function deleteToken(
  id: string,
  options: PasswordOptions & { json?: boolean },
): Promise<void> {
  const { api } = await connectByPassword(options);
  await unwrap(api.DELETE('/api/users/-/tokens/{id}', { params: { path: { id } } }));
  await printDone({ id, deleted: true }, options);
}
