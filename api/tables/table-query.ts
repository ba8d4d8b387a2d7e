import { createHash } from 'node:crypto';
import type { ColumnStatistics } from '../../shared/database/schema.ts';
import type { WindlassError } from '../../shared/errors.ts';
import { type TableFilter, tableFilter } from '../../shared/jobs/catalog.ts';
import { invalidInput } from '../http/validate.ts';
import { checkFilterValue } from './filter-value.ts';

export interface Sort {
  column: string;
  descending: boolean;
}

/** Sort and filter in canonical form: equal views have equal JSON. */
export interface ViewDefinition {
  sort: Sort[];
  filter: TableFilter[];
}

const MAX_SORT = 20;
const MAX_FILTER = 20;
const OPERATORS = tableFilter.shape.op.options;

type Given = string | string[] | undefined;
const listed = (given: Given): string[] =>
  given === undefined ? [] : Array.isArray(given) ? given : [given];

/** `columns=a,b`, repeatable; all columns by default. A value that equals a column's name is not split at its commas. */
export function parseColumns(given: Given, columns: ColumnStatistics[]): string[] {
  if (given === undefined) return columns.map(column => column.name);
  const names = new Set(columns.map(column => column.name));
  const wanted = listed(given).flatMap(text => (names.has(text) ? [text] : text.split(',')));
  for (const name of wanted) if (!names.has(name)) throw unknownColumn('columns', name);
  if (wanted.length > columns.length)
    throw invalidQuery('columns', `names more columns than the table has (${columns.length})`);
  return wanted;
}

/** `sort=name,-other`, repeatable. A value that equals a column's name is neither split nor read as descending. */
export function parseSort(given: Given, columns: ColumnStatistics[]): Sort[] {
  const names = new Set(columns.map(column => column.name));
  const isKnown = (text: string) =>
    names.has(text) || (text[0] === '-' && names.has(text.slice(1)));
  const words = listed(given).flatMap(text => (isKnown(text) ? [text] : text.split(',')));
  const seen = new Set<string>();
  const sort: Sort[] = [];
  for (const word of words) {
    const descending = !names.has(word) && word[0] === '-';
    const column = descending ? word.slice(1) : word;
    if (!names.has(column)) throw unknownColumn('sort', column);
    // A repeated column has no effect.
    if (seen.has(column)) continue;
    seen.add(column);
    sort.push({ column, descending });
  }
  if (sort.length > MAX_SORT) throw invalidQuery('sort', `names more than ${MAX_SORT} columns`);
  return sort;
}

/** `filter=column:op:value`, repeatable: rows must pass all. Of several columns that match, the longest name counts. */
export function parseFilter(given: Given, columns: ColumnStatistics[]): TableFilter[] {
  const known = new Map(columns.map(column => [column.name, column]));
  const filters = listed(given).map(text => {
    const { column, rest } = splitFilter(text, known);
    const colon = rest.indexOf(':');
    const op = OPERATORS.find(word => word === rest.slice(0, colon < 0 ? undefined : colon));
    if (!op)
      throw invalidQuery(
        'filter',
        `${quote(rest)} after ${quote(column.name)} must be one of ${OPERATORS.join(', ')}, a colon and a value`,
      );
    const value = colon < 0 ? 'true' : rest.slice(colon + 1);
    if (colon < 0 && op !== 'null')
      throw invalidQuery('filter', `${op} needs a value: ${op}:VALUE`);
    const problem = checkFilterValue(column.type, op, value);
    if (problem)
      throw invalidQuery('filter', `${quote(column.name)} ${op} ${quote(value)}: ${problem}`);
    return { column: column.name, op, value };
  });
  const texts = [...new Set(filters.map(filter => JSON.stringify(filter)))].sort();
  if (texts.length > MAX_FILTER)
    throw invalidQuery('filter', `is given more than ${MAX_FILTER} times`);
  return texts.map(text => JSON.parse(text) as TableFilter);
}

/** The id of a view: a hash of its source and definition. */
export function viewId(source: string, { sort, filter }: ViewDefinition): string {
  return createHash('sha256')
    .update(JSON.stringify([source, sort, filter]))
    .digest('hex');
}

function splitFilter(
  text: string,
  known: Map<string, ColumnStatistics>,
): { column: ColumnStatistics; rest: string } {
  for (let at = text.lastIndexOf(':'); at > 0; at = text.lastIndexOf(':', at - 1)) {
    const column = known.get(text.slice(0, at));
    if (column) return { column, rest: text.slice(at + 1) };
  }
  throw unknownColumn('filter', text.split(':')[0] ?? '');
}

const quote = (text: string) => JSON.stringify(text.slice(0, 100));

const unknownColumn = (field: string, name: string) =>
  invalidQuery(field, `there is no column ${quote(name)}`);

export const invalidQuery = (field: string, problem: string): WindlassError =>
  invalidInput([{ field, problem }], 'GET …/metadata lists the columns and their types.');
