import { isNull, or, sql } from 'drizzle-orm';
import { type HostRow, hosts } from '../database/schema.ts';
import { WindlassError } from '../errors/errors.ts';

interface Named {
  username: string;
}

/** Whether the user may open sessions on the host of a row. */
export const isHostFor = ({ username }: Named) =>
  or(isNull(hosts.users), sql`${username} = any(${hosts.users})`);

/** Throws `host_not_allowed`. A server administrator is no exception, but may change the entry. */
export function assertHostFor({ name, users }: HostRow, { username }: Named): void {
  if (users === null || users.includes(username)) return;
  throw new WindlassError('host_not_allowed', {
    detail: `${name} is not for you.`,
    hint: "A server administrator adds you to `users` of the host's entry.",
  });
}
