import { MAX_COLUMNS, MAX_RECORD_BYTES } from '../csv/dialect.ts';
import { nameColumns } from '../csv/name-columns.ts';
import { quoteName } from '../table/duckdb.ts';
import { TableError } from '../table/protocol.ts';
import type { SqlType } from '../table/sql-types.ts';
import { someDate } from './dates-inside.ts';

/** How a column of a Parquet file becomes a column of a table, each value exactly. */
export interface ColumnPlan {
  name: string;
  type: SqlType;
  /** An SQL expression for the value in the table. */
  value: string;
  /** What a table cannot hold: an SQL condition on the value in the file, and its description. */
  faults: { when: string; reason: string }[];
  /** If the condition is false for any value, the column holds texts. */
  orText?: { unless: string; value: string };
  /** An SQL expression for the bytes of a value. */
  bytes: string;
}

const INTEGER = /^U?(TINYINT|SMALLINT|INTEGER)$|^BIGINT$/;
const DECIMAL = /^DECIMAL\((\d+),(\d+)\)$/;
/** Lists and records of these have JSON that says them exactly. */
const NESTED = /(\[\d*\]|^STRUCT\(.*\))$/s;
/** The name of a record's field, before its type. */
const FIELD_NAME = /(?<=[(,] ?)("(?:[^"]|"")*"|\w+) (?=[A-Z])/g;
const NOT_IN_JSON = /\b(BLOB|TIME\w*|INTERVAL|MAP|UNION|VARIANT|GEOMETRY|BIT)\b/;

const isOutside = (value: string, type: string) =>
  `${value} NOT BETWEEN ${type} '0001-01-01' AND ${type} '9999-12-31${type === 'DATE' ? '' : ' 23:59:59.999999'}'`;
const OUT_OF_YEARS = 'it is outside of the years 1 to 9999';
export const NANOSECONDS = 'it has nanoseconds, and a table holds microseconds';
const nanosecondsOf = (value: string) => ({
  when: `epoch_ns(${value}) % 1000 <> 0`,
  reason: NANOSECONDS,
});

/** Plans the columns by DuckDB's names and types. Throws TableError for types that no table holds. */
export function planColumns(
  found: { name: string; type: string }[],
  written: string[],
): ColumnPlan[] {
  if (found.length > MAX_COLUMNS)
    throw new TableError({
      reason: `there are ${found.length.toLocaleString('en')} columns, and at most ${MAX_COLUMNS.toLocaleString('en')} can be kept`,
      hint: 'Turn the table, or split it.',
    });
  const names = nameColumns(found.map(({ name }, i) => written[i] ?? name));
  return found.map(({ name, type }, i) => {
    const plan = planOf(quoteName(name), type);
    if (plan) return { name: names[i] as string, ...plan };
    throw new TableError({
      column: names[i],
      reason: `its values are of type ${type.slice(0, 200)}, which no column of a table is`,
      hint: 'Leave the column out, or write its values as texts.',
    });
  });
}

function planOf(value: string, type: string): Omit<ColumnPlan, 'name'> | undefined {
  const orText = (unless: string) => ({
    orText: { unless, value: `CAST(${value} AS VARCHAR)` },
  });
  const plan = (as: SqlType, more: Partial<ColumnPlan> = {}) => ({
    type: as,
    value: `CAST(${value} AS ${as})`,
    faults: [],
    bytes: '8',
    ...more,
  });
  const text = (as: string, faults: ColumnPlan['faults'] = []) =>
    plan('VARCHAR', {
      value: as,
      faults: [...faults, ...faultsOfText(as)],
      bytes: `strlen(${as})`,
    });
  const decimal = DECIMAL.exec(type);
  if (type === 'BOOLEAN') return plan('BOOLEAN');
  if (INTEGER.test(type)) return plan('BIGINT');
  if (type === 'UBIGINT') return plan('BIGINT', orText(`${value} <= ${2n ** 63n - 1n}`));
  if (type === 'FLOAT' || type === 'DOUBLE') return plan('DOUBLE');
  if (decimal?.[2] === '0')
    return plan('BIGINT', orText(`${value} IS NULL OR TRY_CAST(${value} AS BIGINT) IS NOT NULL`));
  if (decimal) {
    // DuckDB divides by the power of ten, which is no exact double past 10^22; from a text it finds the nearest double.
    const digits = Number(decimal[2]) > 22 ? `CAST(${value} AS VARCHAR)` : value;
    const nearest = `CAST(${digits} AS DOUBLE)`;
    return plan('DOUBLE', {
      value: nearest,
      // A double may be too large for the type; NULL of it would pass.
      ...orText(`TRY_CAST(${nearest} AS ${type}) IS NOT DISTINCT FROM ${value}`),
    });
  }
  if (type === 'DATE')
    return plan('DATE', { faults: [{ when: isOutside(value, 'DATE'), reason: OUT_OF_YEARS }] });
  if (type === 'TIME' || type === 'TIME_NS')
    return plan('TIME', {
      faults: [
        {
          when: `CAST(${value} AS TIME) NOT BETWEEN TIME '00:00:00' AND TIME '23:59:59.999999'`,
          reason: 'it is no time of day, from 00:00 to 23:59:59.999999',
        },
        ...(type === 'TIME_NS' ? [nanosecondsOf(value)] : []),
      ],
    });
  if (type === 'TIMESTAMP WITH TIME ZONE')
    return plan('TIMESTAMPTZ', {
      faults: [{ when: isOutside(value, 'TIMESTAMPTZ'), reason: OUT_OF_YEARS }],
    });
  if (/^TIMESTAMP(_S|_MS|_NS)?$/.test(type))
    return plan('TIMESTAMP', {
      faults: [
        { when: isOutside(`CAST(${value} AS TIMESTAMP)`, 'TIMESTAMP'), reason: OUT_OF_YEARS },
        ...(type === 'TIMESTAMP_NS' ? [nanosecondsOf(value)] : []),
      ],
    });
  if (type === 'VARCHAR') return text(value);
  if (type === 'UUID' || type === 'JSON' || type.startsWith('ENUM('))
    return text(`CAST(${value} AS VARCHAR)`);
  if (type === 'BLOB')
    return text(`TRY(decode(${value}))`, [
      {
        when: `${value} IS NOT NULL AND TRY(decode(${value})) IS NULL`,
        reason: 'its bytes are no UTF-8',
      },
    ]);
  if (NESTED.test(type) && !NOT_IN_JSON.test(type.replaceAll(FIELD_NAME, ''))) {
    const json = `CAST(to_json(${value}) AS VARCHAR)`;
    // A text may say so.
    const bare = `regexp_replace(${json}, '"(\\\\.|[^"\\\\])*"', '""', 'g')`;
    // In a list, because DuckDB cannot read a single field of a record that has an unnamed one.
    const date = someDate(`[${value}]`, {
      type: `${type}[]`,
      isBad: one => isOutside(one, 'DATE'),
    });
    const nan = `regexp_matches(${bare}, '[\\[:,](NaN|-?Infinity)[\\]},]')`;
    return text(json, [
      ...(date
        ? [{ when: date, reason: 'a date inside of it is outside of the years 1 to 9999' }]
        : []),
      { when: nan, reason: 'there is a NaN or an infinity inside of it' },
      // DuckDB writes decimals without digits before the point as `.1`.
      { when: `NOT json_valid(${json})`, reason: 'there is no JSON for what is inside of it' },
    ]);
  }
}

function faultsOfText(value: string): ColumnPlan['faults'] {
  return [
    { when: `contains(${value}, chr(0))`, reason: 'it has a NUL character' },
    {
      when: `strlen(${value}) > ${MAX_RECORD_BYTES}`,
      reason: `it is longer than ${MAX_RECORD_BYTES.toLocaleString('en')} bytes`,
    },
  ];
}
