import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { packageRoot } from '../../process/package-root.ts';

/** The folder that drizzle-kit writes. */
export const MIGRATIONS = fileURLToPath(new URL('migrations', packageRoot));

export interface Migration {
  /** The name of its file. */
  tag: string;
  /** Identifies it in drizzle.__drizzle_migrations. */
  when: number;
  hash: string;
  statements: Statement[];
}

/** How a statement is run; see decision 29. */
export type Statement = { text: string } & (
  | { form: 'plain' }
  /** Creates or drops an index concurrently, which no transaction can. */
  | { form: 'concurrent'; creates: boolean; index: string }
  /** Changes the rows whose keys it is given as `$1`, so many at a time. */
  | { form: 'batches'; table: string; key: string }
);

const CONCURRENT =
  /^(create|drop)(?:\s+unique)?\s+index\s+concurrently\s+(?:if\s+(?:not\s+)?exists\s+)?("[^"]+"|\w+)/i;
const BATCHES = /^-- batches: (\S+) by (\S+)$/m;

/** The migrations of a folder, in the order of drizzle-kit's journal. */
export function readMigrations(folder: string): Migration[] {
  return readJournal(folder).map(({ tag, when }) => {
    const text = readFileSync(`${folder}/${tag}.sql`, 'utf8');
    const hash = createHash('sha256').update(text).digest('hex');
    const statements = text.split('--> statement-breakpoint').map(readStatement);
    return { tag, when, hash, statements };
  });
}

export function readJournal(folder: string): { tag: string; when: number }[] {
  return JSON.parse(readFileSync(`${folder}/meta/_journal.json`, 'utf8')).entries;
}

export function readStatement(text: string): Statement {
  const batches = BATCHES.exec(text);
  if (batches) return { text, form: 'batches', table: batches[1] ?? '', key: batches[2] ?? '' };
  const concurrent = CONCURRENT.exec(withoutComments(text));
  if (!concurrent) return { text, form: 'plain' };
  const [, verb, index = ''] = concurrent;
  return { text, form: 'concurrent', creates: verb?.toLowerCase() === 'create', index };
}

/** A statement without the lines that are comments. */
export const withoutComments = (text: string) => text.replace(/^[ \t]*--.*$/gm, '').trim();
