import type { ColumnStatistics } from '../../shared/database/schema.ts';
import type { ParserName, ParserParameters } from '../../shared/parsers.ts';
import type { JobContext } from '../context.ts';
import type { UploadedFile } from './read-parts.ts';

/** What a parser makes of a file: bytes that lie in the object store already, under a key that nothing refers to yet. */
export interface MadeArtifact {
  aid: string;
  kind: 'file' | 'table';
  object: string;
  /** Bytes. */
  size: number;
  /** Tables. */
  rows?: number;
  columns?: ColumnStatistics[];
}

export interface ParseContext<P extends ParserName = ParserName> {
  job: JobContext<'parse'>;
  upload: string;
  parameters: ParserParameters<P>;
  /** The name of the file's artifact; a parser that makes several adds `/name` to it. */
  aid: string;
  /** A new key below the model's. */
  newKey(): string;
  /** How much of the file is done, 0…1. */
  tell(share: number, message?: string): void;
}

/**
 * A parser, for one file of an upload. Throws TableError or WindlassError `parse_failed` for what the file's owner has
 * to correct. It is begun anew after a lost worker, so it may leave nothing but objects behind.
 */
export type Parser<P extends ParserName> = (
  file: UploadedFile,
  context: ParseContext<P>,
) => Promise<MadeArtifact[]>;

/** Sources end in .ts, the compiled program in .js. */
const extension = import.meta.url.slice(import.meta.url.lastIndexOf('.'));

/** The parser of this name: its file beside this one. */
export async function loadParser(name: ParserName): Promise<Parser<ParserName>> {
  return (await import(new URL(`${name}${extension}`, import.meta.url).href)).default;
}
