import { type SQL, sql } from 'drizzle-orm';

/**
 * A time of ISO 8601 as a timestamptz. PostgreSQL's own reading refuses what the format allows: zones beyond 15:59, the
 * year 0 and what is the year 10000 in UTC.
 */
export const timestampOf = (time: string): SQL =>
  sql`to_timestamp(${Date.parse(time)}::float8 / 1000)`;
