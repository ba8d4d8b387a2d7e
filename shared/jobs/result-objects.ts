import { type SQL, sql } from 'drizzle-orm';

/** The keys of the objects that a job's result refers to, some of them null: its bytes, and stills of a video. A backup has them too. */
export const resultObjects = (result: SQL) =>
  sql`${result} ->> 'object', ${result} ->> 'poster', ${result} ->> 'sprite'`;
