import { sql } from 'drizzle-orm';

/** Ids, or tokens, as the text of an array of PostgreSQL. */
export const textArray = (ids: string[]) => `{${ids.join(',')}}`;

/** Of ids as one parameter: a statement's text is the same for any number of them, and it takes at most 65,535 parameters. */
export const anyOf = (ids: string[]) => sql`any(${sql.param(textArray(ids))}::text[])`;
