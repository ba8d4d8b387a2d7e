import type { View } from '../service/table-view.ts';

export const OPS = { eq: '=', ne: '≠', lt: '<', le: '≤', gt: '>', ge: '≥', null: 'missing' };
export type Op = keyof typeof OPS;

/** The view that an address names. */
export const readView = (search: URLSearchParams): View => ({
  sort: search.getAll('sort'),
  filter: search.getAll('filter'),
});

export type Direction = 'ascending' | 'descending' | undefined;

/** What a view is sorted by, as the service reads it: a text that is a column's name is neither split nor descending. */
function readSort({ sort }: View, names: ReadonlySet<string>) {
  const isKnown = (text: string) =>
    names.has(text) || (text[0] === '-' && names.has(text.slice(1)));
  const words = sort.flatMap(text => (isKnown(text) ? [text] : text.split(',')));
  return words.map(word => {
    const isDescending = !names.has(word) && word[0] === '-';
    const direction: Direction = isDescending ? 'descending' : 'ascending';
    return { word, column: isDescending ? word.slice(1) : word, direction };
  });
}

/** A column among all `names` of the table. */
export interface NamedColumn {
  name: string;
  names: ReadonlySet<string>;
}

export const directionOf = (view: View, { name, names }: NamedColumn): Direction =>
  readSort(view, names).find(({ column }) => column === name)?.direction;

/**
 * The next order of a column: up, down, that of the file. Others stay where several are `kept`. Beside a column `-x`, `x` has no
 * order down.
 */
export function turnSort(view: View, { name, names }: NamedColumn, isKept: boolean): string[] {
  const sort = readSort(view, names);
  const others = isKept ? sort.filter(({ column }) => column !== name) : [];
  const down = names.has(`-${name}`) ? [] : [`-${name}`];
  const next = { ascending: down, descending: [] as string[] };
  const direction = directionOf(view, { name, names });
  return [...others.map(({ word }) => word), ...(direction ? next[direction] : [name])];
}

const isOp = (word: string): word is Op => Object.hasOwn(OPS, word);

/** A filter in words; names may hold colons, so that it is of the longest one that an operator follows, as in the service. */
export function describeFilter(filter: string, columns: string[]): string {
  const splits = columns
    .filter(name => filter.startsWith(`${name}:`))
    .sort((a, b) => b.length - a.length)
    .map(column => {
      const [op = '', ...rest] = filter.slice(column.length + 1).split(':');
      const isWhole = isOp(op) && (rest.length > 0 || op === 'null');
      return { column, op, value: rest.join(':'), isWhole };
    });
  const found = splits.find(({ isWhole }) => isWhole) ?? splits[0];
  if (!found) return filter;
  const { column, op, value } = found;
  if (op === 'null') return `${column} is ${value === 'false' ? 'there' : 'missing'}`;
  return `${column} ${isOp(op) ? OPS[op] : op} ${value}`;
}
