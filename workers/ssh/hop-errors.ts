import type { HostRow } from '../../shared/database/schema.ts';
import { ERRORS, type ErrorCode, WindlassError } from '../../shared/errors/errors.ts';

/** Errors whose detail speaks of the host without its name. */
const UNNAMED: ReadonlySet<ErrorCode> = new Set([
  'account_unusable',
  'host_not_allowed',
  'remote_authentication_failed',
  'remote_connection_failed',
] as const);

/** Rethrows an error of the last hop; if there are several hops, its detail names that one. */
export const namingHop =
  (until: HostRow[], { length }: HostRow[]) =>
  (error: unknown): never => {
    const host = until.at(-1);
    if (length === 1 || !host || !(error instanceof WindlassError) || !UNNAMED.has(error.code))
      throw error;
    const { code, hint, headers, extra, cause } = error;
    const said = error.message.replace(`${ERRORS[code].title.replace(/\.$/, '')}: `, '');
    const which = until.length < length ? `at the jump host ${host.name}` : `at ${host.name}`;
    throw new WindlassError(code, { detail: `${which}: ${said}`, hint, headers, extra, cause });
  };
