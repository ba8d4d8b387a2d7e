import type { ColumnStatistics, CsvDialect } from '../../../shared/database/schema.ts';
import type { TableFilter, TableGroups } from '../../../shared/jobs/catalog.ts';
import type { ParserParameters } from '../../../shared/parsers.ts';

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

/** Both paths are in the scratch folder, the only one that the child can access. */
interface Files {
  scratch: string;
  input: string;
  output: string;
  /** The most bytes of memory that the child may use. */
  memory: number;
}

/** The request: one JSON line on the child's standard input, which stays open until the answer has come. */
export type TableRequest = CsvRequest | ViewRequest;

export interface CsvRequest extends Files {
  kind: 'csv';
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
  /** Of CSV files. */
  dialect?: CsvDialect;
  /** Malformed rows that were left out. */
  skipped?: { count: number; problems: TableProblem[] };
}

/** The answers: JSON lines on the child's standard output, the last one `made`, `refused` or `failed`. */
export type TableAnswer =
  | { progress: number }
  | { made: MadeTable }
  | { refused: { problems: TableProblem[]; count: number; hint?: string } }
  | { failed: 'memory' | 'disk' | 'other'; message: string };
