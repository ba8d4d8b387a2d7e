import type { DuckDBConnection } from '@duckdb/node-api';
import { query } from '../table/duckdb.ts';
import { TableError } from '../table/protocol.ts';
import { ASKED, type SqlType } from '../table/sql-types.ts';
import {
  ALL_TYPES,
  chooseType,
  findTypes,
  findTypesOfFirst,
  type Notation,
  setOf,
  type TypeSet,
} from './column-types.ts';
import { areAllTexts, hasIndex, isIndexed, looksLikeHeader, recurs } from './header.ts';
import { isCommaNumber } from './infer-delimiter.ts';
import { nameColumns } from './name-columns.ts';
import { type CsvTable, nullsOf, readCsv } from './read-csv.ts';

/** The size of the sample for the first guess at the types. */
export const SAMPLE = { rows: 50_000, cells: 500_000, least: 1_000 };

export interface GuessedColumn {
  name: string;
  type: SqlType;
  /** The types that the user allows. */
  asked: TypeSet | undefined;
}

export interface Guess {
  /** The columns without an empty last one, see hasOnlyTrailingDelimiters(). */
  columns: GuessedColumn[];
  hasHeader: boolean;
  /** Whether the header is one by the look of its texts alone: it stands over texts. */
  isHeaderGuessed: boolean;
  notation: Notation;
}

/** Guesses header and column types from the first rows. */
export async function guessColumns(
  connection: DuckDBConnection,
  { table, sample }: { table: CsvTable; sample: typeof SAMPLE },
): Promise<Guess> {
  const { first } = table.dialect;
  const { parameters } = table.request;
  const notation: Notation = {
    decimal: parameters.decimal ?? '.',
    fortran: true,
    emptyIsMissing: !table.types && parameters.nulls === undefined,
  };
  const rows = Math.max(
    sample.least,
    Math.min(sample.rows, Math.floor(sample.cells / first.length)),
  );
  const all = readCsv(table, true);
  const relation = `(SELECT * FROM ${all} LIMIT ${rows})`;
  const found = await findTypes(connection, { relation, columns: [...first.keys()], notation });
  const empty = [...found].flatMap(([i, set]) => (set === ALL_TYPES ? [i] : []));
  if (empty.length > 0)
    for (const [i, set] of await findTypes(connection, { relation: all, columns: empty, notation }))
      found.set(i, set);
  const below = [...found.values()];
  const nulls = nullsOf(parameters);
  const own = await findTypesOfFirst(connection, { first, nulls, notation });
  const placed = (types: TypeSet[], under: TypeSet[]) =>
    first.map((text, i) => ({ text, types: types[i] ?? ALL_TYPES, below: under[i] ?? ALL_TYPES }));
  const seemingHeader = async (): Promise<'certain' | 'guessed' | 'none'> => {
    if (parameters.decimal || !first.some(isCommaNumber)) {
      const values = placed(own, below);
      if (!looksLikeHeader(values)) return 'none';
      if (!areAllTexts(values)) return 'certain';
      if (hasIndex(values) && !(await isIndexed(connection, relation))) return 'none';
      return (await recurs(connection, { relation, texts: first })) ? 'none' : 'guessed';
    }
    // Texts such as 1,5 are no names. Only this check reads them as numbers, as they may be thousands.
    const commas: Notation = { ...notation, decimal: ',' };
    const asNumbers = await findTypes(connection, {
      relation,
      columns: [...first.keys()],
      notation: commas,
    });
    const ownAsNumbers = await findTypesOfFirst(connection, { first, nulls, notation: commas });
    const values = placed(ownAsNumbers, [...asNumbers.values()]);
    if (!looksLikeHeader(values)) return 'none';
    return areAllTexts(values) ? 'guessed' : 'certain';
  };
  const asked = Object.keys(parameters.types ?? {});
  const hasAsked = asked.length > 0 && asked.every(name => first.includes(name));
  const told = parameters.header ?? (parameters.units || hasAsked || undefined);
  const seeming = told === undefined ? await seemingHeader() : undefined;
  const hasHeader = told ?? seeming !== 'none';
  const names = nameColumns(hasHeader ? first : first.map(() => ''));
  if (hasHeader && !table.types && hasOnlyTrailingDelimiters(first, below)) names.pop();
  refuseUnknownNames(parameters.types ?? {}, names);
  const columns = names.map((name, i) => {
    const { types = {} } = parameters;
    // A column may be called `constructor`.
    const given = Object.hasOwn(types, name) ? types[name] : undefined;
    const type = given ?? (parameters.text ? 'text' : undefined);
    const asked = table.types?.[i] ?? (type && setOf(...ASKED[type]));
    const set = below[i] ?? 0;
    return { name, asked, type: chooseType(hasHeader ? set : set & (own[i] ?? set), asked) };
  });
  const fortran = await hasFortranExponents(connection, { relation, columns });
  return {
    hasHeader,
    isHeaderGuessed: seeming === 'guessed',
    columns,
    notation: { ...notation, fortran },
  };
}

/** Whether all rows end in a delimiter: the last column has neither name nor values. */
function hasOnlyTrailingDelimiters(first: string[], below: TypeSet[]): boolean {
  return first.length > 1 && first.at(-1)?.trim() === '' && below.at(-1) === ALL_TYPES;
}

function refuseUnknownNames(types: Record<string, unknown>, names: string[]): void {
  for (const name of Object.keys(types))
    if (!names.includes(name))
      throw new TableError({
        row: 1,
        column: name,
        reason: 'there is no such column, though "types" names it',
        hint: `Name columns as they are in the table: ${names.slice(0, 20).join(', ')}${names.length > 20 ? ', …' : ''}.`,
      });
}

/** Whether the sample has one: checking all numbers takes time, and few files need it. */
async function hasFortranExponents(
  connection: DuckDBConnection,
  { relation, columns }: { relation: string; columns: GuessedColumn[] },
): Promise<boolean> {
  const numbers = columns.flatMap(({ type }, i) => (type === 'DOUBLE' ? [`c${i}`] : []));
  if (numbers.length === 0) return false;
  const has = numbers.map(value => `contains(lower(${value}), 'd')`).join(' OR ');
  const [found] = await query(connection, `SELECT bool_or(${has}) AS found FROM ${relation}`);
  return found?.found === true;
}
