import type { DuckDBConnection } from '@duckdb/node-api';
import { query, quoteText } from '../table/duckdb.ts';
import { ALL_TYPES, narrowest, setOf, type TypeSet } from './column-types.ts';

/**
 * A letter, also after signs (@timestamp, (s), ∆T); the sign of a unit; an ordinal such as 1st; or a year or month beside
 * its code, as in 2019 [YR2019]. Measured values (<0.01, <LOD, 5%, 24:00) and \N, a missing value of databases, do not
 * match.
 */
const NAME =
  /^[^\p{L}\p{N}<>=~\\]{0,2}[\p{L}_]|^[([]?[%‰°#](?!\d)|^\d+(?:st|nd|rd|th)\b|^(\d{4}\w*) \[(?:YR)?\1\]$/iu;
/** What programs write for missing values and booleans, also between signs. */
const NO_NAME =
  /^[^\p{L}\p{N}]{0,2}(?:nan(?:\(\w*\))?|nat|n\.?\/?a\.?|null|nil|none|missing|inf|infinity|true|false)[^\p{L}\p{N}]{0,2}$|^#[a-z0/]+[!?]$/iu;
/** Measured or counted values: limits, shares, thousands, times, money. Dates with dots do not match. */
const MEASURED =
  /^[<>=~≤≥≈±]|\d\s*[%‰]$|\d:\d|^\d{4}-\d\d-\d\dT|^[$€£¥]\s*[\d-]|\d\s*[$€£¥]$|^(?!\d{1,2}\.\d{1,2}\.(?:\d\d){1,2}$)[-+]?[\d.,' ]+$|^(?:n\.?d\.?|bdl|bql)$/iu;
/** A recent one: fewer measured values look like it. */
const YEAR = /^(?:1[89]|2[01])\d\d$/;
const TEXT = setOf('VARCHAR');
const NUMBERS = setOf('BIGINT', 'DOUBLE');
const TIMES = setOf('DATE', 'TIME', 'TIMESTAMP', 'TIMESTAMPTZ');

/** Whether a text of the first record looks like a column's name, not like a value. */
export function looksLikeName(text: string): boolean {
  const trimmed = text.trim();
  return NAME.test(trimmed) && !NO_NAME.test(trimmed);
}

/** A value of the first record. */
export interface FirstValue {
  text: string;
  /** The types that hold it; all of them where it is missing. */
  types: TypeSet;
  /** The types that hold the values below it; all of them where there are none. */
  below: TypeSet;
}

/** Whether it is a text that is no value: 24h, 1A and 0-4 may be names or something else. */
function mayBeName(text: string): boolean {
  const trimmed = text.trim();
  return trimmed !== '' && !NO_NAME.test(trimmed) && !MEASURED.test(trimmed) && trimmed !== '\\N';
}

/**
 * Whether the first record is a header; in doubt it is not, so that no row is lost. It has a name above a column
 * without texts, or possible names above all such columns, at least two, or a date above numbers (a column per day).
 * For texts only, see areAllNames().
 */
export function looksLikeHeader(first: FirstValue[]): boolean {
  if (areAllTexts(first)) return areAllNames(first);
  return !hasValue(first) && (hasName(first) || haveAllLabels(first));
}

/**
 * Whether one is a value of the type below it: beside such a value OL or Bad is what a device writes for a value. Where all
 * such values are years, each another one and two at least, they name columns.
 */
function hasValue(first: FirstValue[]): boolean {
  const values = first.filter(({ types, below }) => {
    const type = setOf(narrowest(below));
    return type !== TEXT && types !== ALL_TYPES && (types & type) !== 0;
  });
  const years = new Set(values.map(({ text }) => text.trim()).filter(text => YEAR.test(text)));
  return values.length > 0 && !(years.size > 1 && years.size === values.length);
}

/**
 * Whether the names are like 0h, 6h, 24h over numbers: one such text may be a value written differently, several
 * different ones are not.
 */
function haveAllLabels(first: FirstValue[]): boolean {
  const typed = first.filter(
    ({ types, below }) =>
      below !== ALL_TYPES && types !== ALL_TYPES && narrowest(below) !== 'VARCHAR',
  );
  return (
    typed.length > 1 &&
    typed.every(({ text, types }) => types === TEXT && mayBeName(text)) &&
    new Set(typed.map(({ text }) => text)).size === typed.length
  );
}

function hasName(first: FirstValue[]): boolean {
  return first.some(({ text, types, below }) => {
    const type = setOf(narrowest(below));
    const isDay = (types & TIMES) !== 0 && (types & NUMBERS) === 0;
    return (
      type !== TEXT &&
      ((types === TEXT && looksLikeName(text) && mayBeName(text)) ||
        (isDay && (type & NUMBERS) !== 0))
    );
  });
}

/** Whether no column has values of another type than text. */
export const areAllTexts = (first: FirstValue[]): boolean =>
  first.every(({ below }) => narrowest(below) === 'VARCHAR');

/** Whether the first column has values and no name, like an index, beside at least two names. */
export const hasIndex = ([index, ...others]: FirstValue[]): boolean =>
  index?.text === '' && index.below !== ALL_TYPES && others.length > 1;

/**
 * Whether most are names and the others may be, all different. A column without values may lack one, and so may an
 * index.
 */
function areAllNames(first: FirstValue[]): boolean {
  const named = first
    .slice(hasIndex(first) ? 1 : 0)
    .filter(({ types, below }) => types !== ALL_TYPES || below !== ALL_TYPES);
  return (
    named.length > 0 &&
    named.every(({ text, types }) => types === TEXT && mayBeName(text)) &&
    named.filter(({ text }) => looksLikeName(text)).length > named.length / 2 &&
    new Set(named.map(({ text }) => text)).size === named.length
  );
}

/** Whether no value of its first column is there twice. */
export async function isIndexed(connection: DuckDBConnection, relation: string): Promise<boolean> {
  const [found] = await query(
    connection,
    `SELECT count(DISTINCT c0) = count(*) AS found FROM ${relation}`,
  );
  return found?.found === true;
}

/** Whether one of these texts is also a value of its column c0, c1, … below. */
export async function recurs(
  connection: DuckDBConnection,
  { relation, texts }: { relation: string; texts: string[] },
): Promise<boolean> {
  const same = texts.map((text, i) => `c${i} = ${quoteText(text)} AND c${i} <> ''`).join(' OR ');
  const found = await query(connection, `SELECT 1 FROM ${relation} WHERE ${same} LIMIT 1`);
  return found.length > 0;
}
