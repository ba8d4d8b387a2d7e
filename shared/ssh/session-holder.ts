import { sql } from 'drizzle-orm';
import { sessions } from '../database/schema.ts';
import { IS_ALIVE } from '../jobs/lease.ts';

/** Whether the worker that has the connection of a session, or its login under way, is alive. */
export const isConnectionHeld = sql<boolean>`exists (select from workers where workers.id = ${sessions.holder}
  and ${sql.raw(IS_ALIVE)})`;
