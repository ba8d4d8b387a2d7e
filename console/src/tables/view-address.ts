import type { View } from '../service/tables.ts';

export const OPS = { eq: '=', ne: '≠', lt: '<', le: '≤', gt: '>', ge: '≥', null: 'missing' };
export type Op = keyof typeof OPS;

/** The view that an address names. */
export const readView = (search: URLSearchParams): View => ({
  sort: search.getAll('sort'),
  filter: search.getAll('filter'),
});

export type Direction = 'ascending' | 'descending' | undefined;

export function directionOf({ sort }: View, column: string): Direction {
  if (sort.includes(column)) return 'ascending';
  return sort.includes(`-${column}`) ? 'descending' : undefined;
}

/** The next order of a column: up, down, that of the file. Others stay where several are `kept`. */
export function turnSort(view: View, column: string, isKept: boolean): string[] {
  const others = isKept ? view.sort.filter(each => each !== column && each !== `-${column}`) : [];
  const next = { ascending: [`-${column}`], descending: [] as string[] };
  const direction = directionOf(view, column);
  return [...others, ...(direction ? next[direction] : [column])];
}

/** A filter in words; names may hold colons, so that it is read by the names that there are. */
export function describeFilter(filter: string, columns: string[]): string {
  const column = columns
    .filter(name => filter.startsWith(`${name}:`))
    .reduce((longest, name) => (name.length > longest.length ? name : longest), '');
  const [op = '', ...rest] = filter.slice(column.length + 1).split(':');
  const value = rest.join(':');
  if (op === 'null') return `${column} is ${value === 'true' ? 'missing' : 'there'}`;
  return `${column} ${OPS[op as Op] ?? op} ${value}`;
}
