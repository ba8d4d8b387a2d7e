import type { ColumnStatistics } from '../../../shared/database/schema.ts';
import type { TableFilter } from '../../../shared/jobs/catalog.ts';
import type { ParserParameters } from '../../../shared/parsers.ts';

/** What is wrong with a table file, and where: `row` is the line in the file, from 1. */
export interface TableProblem {
  row?: number;
  column?: string;
  reason: string;
}

/** At most so many problems are named; the rest is counted. */
export const MAX_PROBLEMS = 100;

/** Thrown where a file cannot be a table. */
export class TableError extends Error {
  readonly problems: TableProblem[];
  /** How many problems there are, named or not. */
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

/** Both paths are in the scratch folder, which is all that the child may touch. */
interface Files {
  scratch: string;
  input: string;
  output: string;
  /** Bytes the child may use; DuckDB gets a part of them. */
  memory: number;
}

/** What the child is asked: one JSON line on its standard input, which stays open as long as the answer is wanted. */
export type TableRequest =
  | (Files & {
      kind: 'csv';
      parameters: ParserParameters<'csv'>;
    })
  | (Files & {
      kind: 'view';
      /** How many the source has. */
      columns: number;
      sort: { column: string; descending: boolean }[];
      filter: TableFilter[];
    });

export interface MadeTable {
  rows: number;
  /** Absent for views, whose columns are their source's. */
  columns?: ColumnStatistics[];
}

/** What it answers: JSON lines on its standard output, the last one `made`, `refused` or `failed`. */
export type TableAnswer =
  | { progress: number }
  | { made: MadeTable }
  | { refused: { problems: TableProblem[]; count: number; hint?: string } }
  | { failed: 'memory' | 'disk' | 'other'; words: string };
