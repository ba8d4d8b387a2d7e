import { sqlState } from './connect.ts';
import { hostsOf, splitHosts } from './host-urls.ts';

/** The first major version with `IS JSON`, which checks JSON without changing it. */
const OLDEST_POSTGRES = 16;

/** What the server at `url` refuses until somebody mends the URL or the server, and a hint; undefined for other errors. */
export function describeRefusal(
  error: unknown,
  url: string,
  setting: string,
): { problem: string; hint: string } | undefined {
  const host = hostsOf(url);
  const { pathname, username } = new URL(splitHosts(url)[0] ?? url);
  switch (sqlState(error)) {
    case '28000':
      return {
        // Such as that pg_hba.conf has no entry for connections without encryption.
        problem: `The database at ${host} refuses ${username}: ${messageOf(error)}.`,
        hint: `Correct ${setting}, or the server.`,
      };
    case '28P01':
      return {
        problem: `The database at ${host} refuses the password of ${username}.`,
        hint: `Correct ${setting}.`,
      };
    case '3D000':
      return {
        problem: `There is no database ${pathname.slice(1)} at ${host}.`,
        hint: `Create it, or correct ${setting}.`,
      };
    default:
      return undefined;
  }
}

/** What the server says, through drizzle's wrapping. */
function messageOf(error: unknown): string {
  const { cause, message = '' } = error as Error;
  return cause instanceof Error && !('severity' in (error as Error)) ? messageOf(cause) : message;
}

/** Like describeRefusal(), for a server that is too old; undefined for others. */
export function describeVersion(
  major: number,
  url: string,
): { problem: string; hint: string } | undefined {
  if (major >= OLDEST_POSTGRES) return undefined;
  return {
    problem: `The database at ${hostsOf(url)} is PostgreSQL ${major}.`,
    hint: `Windlass needs ${OLDEST_POSTGRES} or newer.`,
  };
}
