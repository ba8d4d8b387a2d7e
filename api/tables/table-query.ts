import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { ColumnStatistics } from '../../shared/database/schema.ts';
import type { WindlassError } from '../../shared/errors/errors.ts';
import {
  type TableFilter,
  type TableGroups,
  tableFilter,
  tableGroups,
} from '../../shared/jobs/payloads/table-query.ts';
import { invalidInput } from '../http/validate.ts';
import { formatTimestamp } from './encode-value.ts';
import { checkFilterValue, roundBound } from './filter-value.ts';
import { parseTimestamp } from './scale.ts';

export interface Sort {
  column: string;
  descending: boolean;
}

/** Sort, filter and groups in canonical form: equal views have equal JSON. */
export interface ViewDefinition {
  sort: Sort[];
  filter: TableFilter[];
  groups?: TableGroups;
}

const MAX_SORT = 20;
const MAX_FILTER = 20;
const MAX_BY = 20;
const MAX_AGGREGATES = 100;
const OPERATORS = tableFilter.shape.op.options;
const AGGREGATES = tableGroups.shape.aggregates.element.shape.op.options;

const texts = z.union([z.string(), z.array(z.string()).max(5_000)]).optional();
export const columnNames = texts;
export const sortQuery = texts.describe(
  'Names, separated by commas, `-` before one for descending; repeatable.',
);
export const filterQuery = texts.describe(
  'column:op:value; repeatable: rows pass all. op: eq ne lt le gt ge null.',
);

type Given = string | string[] | undefined;
const listed = (given: Given): string[] =>
  given === undefined ? [] : Array.isArray(given) ? given : [given];

/** `columns=a,b`, repeatable; all columns by default. */
export function parseColumns(given: Given, columns: ColumnStatistics[]): string[] {
  if (given === undefined) return columns.map(column => column.name);
  const wanted = namedColumns('columns', given, columns);
  if (wanted.length > columns.length)
    throw invalidQuery('columns', `names more columns than the table has (${columns.length})`);
  return wanted;
}

/** A value that equals a column's name is not split at its commas. */
function namedColumns(field: string, given: Given, columns: ColumnStatistics[]): string[] {
  const names = new Set(columns.map(column => column.name));
  const wanted = listed(given).flatMap(text => (names.has(text) ? [text] : text.split(',')));
  for (const name of wanted) if (!names.has(name)) throw unknownColumn(field, name);
  return wanted;
}

/** `by=a,b&aggregate=count&aggregate=mean:x`, both repeatable; a repeated one has no effect. */
export function parseGroups(
  given: { by: Given; aggregate: Given },
  columns: ColumnStatistics[],
): TableGroups {
  const by = [...new Set(namedColumns('by', given.by, columns))];
  if (by.length > MAX_BY) throw invalidQuery('by', `names more than ${MAX_BY} columns`);
  const texts = [...new Set(listed(given.aggregate ?? 'count'))];
  if (texts.length > MAX_AGGREGATES)
    throw invalidQuery('aggregate', `is given more than ${MAX_AGGREGATES} times`);
  return { by, aggregates: texts.map(text => parseAggregate(text, columns)) };
}

function parseAggregate(
  text: string,
  columns: ColumnStatistics[],
): TableGroups['aggregates'][number] {
  const colon = text.indexOf(':');
  const op = AGGREGATES.find(word => word === text.slice(0, colon < 0 ? undefined : colon));
  if (!op)
    throw invalidQuery(
      'aggregate',
      `${quote(text)} must be count, or one of ${AGGREGATES.join(', ')}, a colon and a column`,
    );
  if (colon < 0) {
    if (op === 'count') return { op };
    throw invalidQuery('aggregate', `${op} needs a column: ${op}:COLUMN`);
  }
  const { name, type } = findColumn('aggregate', text.slice(colon + 1), columns);
  if ((op === 'sum' || op === 'mean') && type !== 'integer' && type !== 'number')
    throw invalidQuery(
      'aggregate',
      `${op} needs a column of numbers, and ${quote(name)} is of type ${type}`,
    );
  return { op, column: name };
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

/**
 * `filter=column:op:value`, repeatable: rows must pass all. Of several columns that match, the longest name counts that an
 * operator follows.
 */
export function parseFilter(given: Given, columns: ColumnStatistics[]): TableFilter[] {
  const known = new Map(columns.map(column => [column.name, column]));
  const filters = listed(given).map(text => {
    const { column, rest } = splitFilter(text, known);
    const { op, value } = splitCondition(rest);
    if (!op)
      throw invalidQuery(
        'filter',
        `${quote(rest)} after ${quote(column.name)} must be one of ${OPERATORS.join(', ')}, a colon and a value`,
      );
    if (value === undefined) throw invalidQuery('filter', `${op} needs a value: ${op}:VALUE`);
    const problem = checkFilterValue(column.type, op, value);
    if (problem)
      throw invalidQuery('filter', `${quote(column.name)} ${op} ${quote(value)}: ${problem}`);
    if (column.type === 'integer') return { column: column.name, ...roundBound({ op, value }) };
    const isTimestamp = column.type === 'timestamp' && op !== 'null';
    return { column: column.name, op, value: isTimestamp ? inUtc(value) : value };
  });
  const texts = [...new Set(filters.map(filter => JSON.stringify(filter)))].sort();
  if (texts.length > MAX_FILTER)
    throw invalidQuery('filter', `is given more than ${MAX_FILTER} times`);
  return texts.map(text => JSON.parse(text) as TableFilter);
}

/** A time with a zone as the same time in UTC, by which a column without zones counts: DuckDB would ignore the zone. */
const inUtc = (value: string) => formatTimestamp(parseTimestamp(value));

/** The column of this name. */
export function findColumn(
  field: string,
  name: string,
  columns: ColumnStatistics[],
): ColumnStatistics {
  const column = columns.find(one => one.name === name);
  if (!column) throw unknownColumn(field, name);
  return column;
}

/** Part of the id of a view that filters by an equal value: views that older releases made lack rows with -0 or NaN. */
const EQUALITY = 2;
/** Part of the id of a view with an order: views that older releases made have 0 for -0 in the columns that they sort by. */
const ORDER = 3;

/** The id of a view: a hash of its source and definition. */
export function viewId(source: string, { sort, filter, groups }: ViewDefinition): string {
  const version = [
    ...(filter.some(({ op }) => op === 'eq') ? [EQUALITY] : []),
    ...(sort.length > 0 || groups ? [ORDER] : []),
  ];
  return createHash('sha256')
    .update(JSON.stringify([source, sort, filter, ...(groups ? [groups] : []), ...version]))
    .digest('hex');
}

function splitFilter(
  text: string,
  known: Map<string, ColumnStatistics>,
): { column: ColumnStatistics; rest: string } {
  let longest: { column: ColumnStatistics; rest: string } | undefined;
  for (let at = text.lastIndexOf(':'); at > 0; at = text.lastIndexOf(':', at - 1)) {
    const column = known.get(text.slice(0, at));
    if (!column) continue;
    const split = { column, rest: text.slice(at + 1) };
    if (splitCondition(split.rest).value !== undefined) return split;
    longest ??= split;
  }
  // What it lacks is told by the refusal.
  if (longest) return longest;
  const words: string[] = text.split(':').slice(1);
  if (OPERATORS.some(op => words.includes(op)))
    throw unknownColumn('filter', text.split(':')[0] ?? '');
  throw invalidQuery(
    'filter',
    `${quote(text)} holds no operator. A filter is column:operator:value, such as sky:eq:rain`,
  );
}

/** An operator and its value; `null` alone is `null:true`. */
function splitCondition(text: string): {
  op: TableFilter['op'] | undefined;
  value: string | undefined;
} {
  const colon = text.indexOf(':');
  const op = OPERATORS.find(word => word === text.slice(0, colon < 0 ? undefined : colon));
  const alone = op === 'null' ? 'true' : undefined;
  return { op, value: op && colon >= 0 ? text.slice(colon + 1) : alone };
}

const quote = (text: string) => JSON.stringify(text.slice(0, 100));

const unknownColumn = (field: string, name: string) =>
  invalidQuery(field, `there is no column ${quote(name)}`);

export const invalidQuery = (field: string, problem: string): WindlassError =>
  invalidInput([{ field, problem }], 'GET …/metadata lists the columns and their types.');
