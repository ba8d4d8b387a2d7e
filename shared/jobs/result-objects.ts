import { type SQL, sql } from 'drizzle-orm';

/** Members of a job's result that are keys of objects: its bytes, and stills of a video. */
export const OBJECT_MEMBERS: ReadonlySet<string> = new Set(['object', 'poster', 'sprite']);

/** The keys of the objects that a job's result refers to, some of them null. A backup has them too. */
export const resultObjects = (result: SQL) =>
  sql.join(
    [...OBJECT_MEMBERS].map(name => sql`${result} ->> ${sql.raw(`'${name}'`)}`),
    sql`, `,
  );
