import { isDatabaseDown, sqlState } from '../../shared/database/connect.ts';

/** It answers, and what it says is news: a full disk, no connection left, a statement that takes too long, a standby. */
const ANSWERED = /^(53|25|57014)/;

/**
 * The level of what fails again and again while the database is away. The heartbeat tells of that every 3 s: a night without a
 * database must not fill a disk with lines.
 */
export const failureLevel = (error: unknown): 'debug' | 'warn' =>
  isDatabaseDown(error) && !ANSWERED.test(sqlState(error) ?? '') ? 'debug' : 'warn';
