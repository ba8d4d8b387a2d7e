import { sql } from 'drizzle-orm';
import { writeTexts } from './text-arrays.ts';

/** Compares with ids as one parameter: a statement's text is the same for any number of them, and it takes at most 65,535 parameters. */
export const anyOf = (ids: string[]) => sql`any(${sql.param(writeTexts(ids))}::text[])`;
