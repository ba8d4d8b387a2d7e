import { isDatabaseDown, sqlState } from './connect.ts';

/**
 * The database answers, and its error is worth a warning: disk full, too many connections, statement time-out.
 */
const ANSWERED = /^(53|57014)/;

/**
 * The log level of what fails repeatedly while the database is unreachable or takes no writes, which each process tells once
 * (shared/service/watch-dependencies.ts). Anything else is a warning, such as a right that the role lacks.
 */
export const failureLevel = (error: unknown): 'debug' | 'warn' =>
  isDatabaseDown(error) && !ANSWERED.test(sqlState(error) ?? '') ? 'debug' : 'warn';
