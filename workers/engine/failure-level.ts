import { isDatabaseDown, sqlState } from '../../shared/database/connect.ts';

/**
 * The database answers, and its error is worth a warning: disk full, too many connections, statement time-out, standby.
 */
const ANSWERED = /^(53|25|57014)/;

/**
 * The log level of what fails repeatedly while the database is away. The heartbeat reports that every 3 s; a night
 * without a database must not fill a disk with lines.
 */
export const failureLevel = (error: unknown): 'debug' | 'warn' =>
  isDatabaseDown(error) && !ANSWERED.test(sqlState(error) ?? '') ? 'debug' : 'warn';
