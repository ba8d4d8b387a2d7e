import type { ColumnStatistics, CsvDialect } from '../../shared/database/schema.ts';
import type { ArtifactKind, ParserName, ParserParameters } from '../../shared/uploads/parsers.ts';
import type { JobContext } from '../context.ts';
import type { TableProblem } from './table/protocol.ts';
import type { UploadedFile } from './upload-files.ts';

/** An artifact that a parser has made from a file: its object is stored, but not referred to yet. */
export interface MadeArtifact {
  aid: string;
  kind: ArtifactKind;
  object: string;
  /** Bytes. */
  size: number;
  /** The number of rows of a table; for an array, which is one column, the number of its values. */
  rows?: number;
  columns?: ColumnStatistics[];
  dialect?: CsvDialect;
  /** Malformed rows of the file that are not in it. */
  skipped?: { count: number; problems: TableProblem[] };
}

export interface ParseContext<P extends ParserName = ParserName> {
  job: JobContext<'parse'>;
  upload: string;
  parameters: ParserParameters<P>;
  /** The name of the file's artifact; a parser that makes several adds `/name` to it. */
  aid: string;
  /** A new key below the model's. */
  newKey(): string;
  /** share: the part of the file that is done, 0…1. */
  reportProgress(share: number, message?: string): void;
}

/**
 * Parses one file of an upload. Throws TableError or WindlassError `parse_failed` for errors in the file. After a lost
 * worker it runs again, so its only side effect may be stored objects.
 */
export type Parser<P extends ParserName> = (
  file: UploadedFile,
  context: ParseContext<P>,
) => Promise<MadeArtifact[]>;
