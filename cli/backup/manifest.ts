import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { tryParseJson } from '../../shared/try-parse-json.ts';
import { CommandError } from '../command-error.ts';

/**
 * What a backup holds, in `backup.json`: a folder with `tables/NAME.copy.gz`, each in the text format of PostgreSQL's COPY,
 * `objects/KEY`, and `SHA256SUMS` of all of them, which `sha256sum -c` reads too.
 */
const manifest = z.object({
  format: z.literal(1),
  /** The release of the program that made it. */
  release: z.string(),
  /** The moment whose state it is. */
  taken: z.iso.datetime(),
  /** The last migration of its tables, as in migrations/meta/_journal.json. */
  migration: z.object({ tag: z.string(), when: z.number() }),
  /** Each after those that it refers to. */
  tables: z.array(z.object({ name: z.string(), columns: z.array(z.string()) })),
  objects: z.number(),
  /** Keys of objects that the store had lost, of which nothing is here. */
  missing: z.array(z.string()).default([]),
});
export type Manifest = z.output<typeof manifest>;

export const MANIFEST = 'backup.json';
export const tableFile = (name: string) => `tables/${name}.copy.gz`;
export const objectFile = (key: string) => `objects/${key}`;

/** Throws CommandError where the folder is no backup that this release knows. */
export async function readManifest(folder: string): Promise<Manifest> {
  const text = await readFile(join(folder, MANIFEST), 'utf8').catch((cause: unknown) => {
    throw new CommandError(`${folder} is no backup.`, {
      hint: 'Give the folder that windlass backup has made.',
      cause,
    });
  });
  const { success, data } = manifest.safeParse(tryParseJson(text));
  if (success) return data;
  throw new CommandError(`${join(folder, MANIFEST)} is of no form that this release reads.`, {
    hint: 'Restore with the release that made the backup, or a newer one.',
  });
}
