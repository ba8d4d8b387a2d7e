import { z } from 'zod';

/** Text of a query, which may be looked for in the database: PostgreSQL stores no NUL. */
export const queryText = z.string().regex(/^[^\0]*$/, 'must not hold a NUL character');
