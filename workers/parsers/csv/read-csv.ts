import type { ParserParameters } from '../../../shared/uploads/parsers.ts';
import { quoteText } from '../table/duckdb.ts';
import type { CsvRequest } from '../table/protocol.ts';
import type { TypeSet } from './column-types.ts';
import { type Dialect, type LineBreak, MAX_RECORD_BYTES } from './dialect.ts';

/** A file whose records are known to be well-formed. */
export interface CsvTable {
  request: CsvRequest;
  dialect: Dialect;
  /** The file with the lines that errors name. */
  text: string;
  /** The file that DuckDB reads, the text or its row records, and its line break. */
  records: string;
  lineBreak: LineBreak;
  /** Whether a value has one: DuckDB's threads, which begin in the middle of a file, may take such lines for rows. */
  hasLineBreaksInValues: boolean;
  /** The average of all rows, or of the first ones. */
  bytesPerRow: number;
  /** Counted, or estimated by the first ones. */
  rows: number;
  /** The possible types of each column, if the file tells more than texts. */
  types?: TypeSet[];
}

export const nullsOf = ({ nulls = [''] }: ParserParameters<'csv'>): string[] => nulls;

/** The records as a relation of texts c0, c1, …, without a header record. */
export function readCsv(
  { request, dialect, records, lineBreak, hasLineBreaksInValues, types }: CsvTable,
  hasHeader: boolean,
): string {
  const { delimiter, quote, first } = dialect;
  const columns = first.map((_, i) => `c${i}: 'VARCHAR'`).join(', ');
  const breaks = lineBreak.replace('\r', '\\r').replace('\n', '\\n');
  // A record may span two of DuckDB's buffers, but not three.
  const bytes = MAX_RECORD_BYTES + 100_000;
  return `read_csv(${quoteText(records)}, auto_detect = false, columns = {${columns}}, header = ${hasHeader},
    delim = ${quoteText(delimiter)}, quote = ${quoteText(quote)}, escape = ${quoteText(quote)},
    new_line = '${breaks}', comment = '', ${missing(types ? undefined : namedNulls(request, first))},
    max_line_size = ${bytes}, buffer_size = ${4 * bytes}, parallel = ${!hasLineBreaksInValues})`;
}

/** In a file of one column a missing value is "", too: many programs skip a line without anything. */
const namedNulls = ({ parameters }: CsvRequest, first: string[]): string[] | undefined =>
  parameters.nulls ?? (first.length === 1 ? [''] : undefined);

/** By default only what is not there at all: in quotes an empty text is a value. */
function missing(nulls: string[] | undefined): string {
  if (nulls === undefined) return "nullstr = [''], allow_quoted_nulls = false";
  if (nulls.length > 0) return `nullstr = [${nulls.map(quoteText).join(', ')}]`;
  // DuckDB wants one at least: no value without quotes has a line break.
  return `nullstr = [chr(10)], allow_quoted_nulls = false`;
}
