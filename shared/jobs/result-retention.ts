import { sql } from 'drizzle-orm';

/** Since its job's end a result can be fetched, or stored in a project's cache, for so long. */
export const RESULT_AVAILABLE = sql`interval '24 hours'`;
/** So long it is kept, with an hour as margin. Triggers count a video's bytes for as long: migration 0032. */
export const RESULT_KEPT = sql`interval '25 hours'`;
