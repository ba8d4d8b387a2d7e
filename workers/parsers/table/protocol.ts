import type { ColumnStatistics, CsvDialect } from '../../../shared/database/schema.ts';
import type { TableFilter, TableGroups } from '../../../shared/jobs/payloads/table-query.ts';
import type {
  ArtifactKind,
  FileParserName,
  ParserParameters,
} from '../../../shared/uploads/parsers.ts';

/** A problem of a table file and its place: `row` is the line in the file, from 1. */
export interface TableProblem {
  row?: number;
  column?: string;
  reason: string;
}

/** The most problems that are listed; all are counted. */
export const MAX_PROBLEMS = 100;

/** Thrown if a file is not a valid table. */
export class TableError extends Error {
  readonly problems: TableProblem[];
  /** The number of problems, listed or not. */
  readonly count: number;
  readonly hint: string | undefined;

  constructor(
    problem: TableProblem & { hint?: string },
    more?: { problems: TableProblem[]; count: number },
  ) {
    const { hint, ...first } = problem;
    super(first.reason);
    this.name = 'TableError';
    this.problems = more?.problems ?? [first];
    this.count = more?.count ?? 1;
    this.hint = hint;
  }
}

export interface Resources {
  /** The only directory that the child can access. */
  scratch: string;
  /** The most bytes of memory that the child may use. */
  memory: number;
  /** DuckDB's, at most. */
  threads: 1 | 2;
  /** DuckDB's share of the memory; by default it depends on the number of columns. */
  share?: number;
}

/**
 * DuckDB's share of the child's memory: its limit covers its buffers only, and Node and its other allocations need the
 * rest.
 */
export const USUAL_SHARE = 0.4;
/** The share for a single thread. With wide tables DuckDB counts more memory than it uses. */
export const LARGEST_SHARE = 0.7;

/** Both paths are in the scratch directory. */
interface Files extends Resources {
  input: string;
  output: string;
}

/** Reads a format, in the child. Throws TableError for what is wrong with the file. */
export type Reader<P extends FileParserName> = (
  request: FileRequest<P>,
  onProgress: (share: number) => void,
) => Promise<MadeFile[]>;

/** The request: one JSON line on the child's standard input, which stays open until the answer has come. */
export type TableRequest = FileRequest | ViewRequest;

/** Asks to read a file of any format; what is made of it is written beside `output`. */
export interface FileRequest<P extends FileParserName = FileParserName> extends Files {
  kind: 'file';
  parser: P;
  parameters: ParserParameters<P>;
  /** LIMIT_EXPANDED_BYTES: the most bytes that a compressed file may expand to. */
  expanded: number;
}

/** Asks to read a text as CSV. */
export interface CsvRequest extends Files {
  parameters: ParserParameters<'csv'>;
}

export interface ViewRequest extends Files {
  kind: 'view';
  /** The number of columns of the source. */
  columns: number;
  sort: { column: string; descending: boolean }[];
  filter: TableFilter[];
  groups?: TableGroups;
}

export interface MadeTable {
  rows: number;
  /** Absent for views, which have the columns of their source. */
  columns?: ColumnStatistics[];
  /** The dialect of a CSV file. */
  dialect?: CsvDialect;
  /** Malformed rows that were left out. */
  skipped?: { count: number; problems: TableProblem[] };
}

/** An artifact of a file, in the scratch directory. */
export interface MadeFile extends Partial<MadeTable> {
  /** Its place in the file, such as a sheet's or a data set's name; empty if the file is one artifact. */
  name: string;
  path: string;
  kind: ArtifactKind;
}

/** What is made, by kind of request. */
export interface Made {
  file: MadeFile[];
  view: MadeTable;
}

/**
 * The answers: JSON lines on the child's standard output, the last one `made`, `refused` or `failed`. `hadMost`: DuckDB had all
 * the memory that it ever gets.
 */
export type TableAnswer =
  | { progress: number }
  | { made: Made[keyof Made] }
  | { refused: { problems: TableProblem[]; count: number; hint?: string } }
  | { failed: 'memory' | 'disk' | 'modules' | 'other'; message: string; hadMost: boolean };
