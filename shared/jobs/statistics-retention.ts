import { sql } from 'drizzle-orm';

/** How long GET /stats tells of a minute. */
export const STATISTICS_KEPT = sql`interval '30 days'`;
