import { z } from 'zod';

/** The types of a table's columns. */
export const COLUMN_TYPES = [
  'text',
  'integer',
  'number',
  'boolean',
  'date',
  'time',
  'timestamp',
] as const;
export type ColumnType = (typeof COLUMN_TYPES)[number];

/** Encodings of text files. UTF-16 without a byte order mark is little-endian. */
export const ENCODINGS = ['utf-8', 'utf-16', 'latin-1', 'windows-1252'] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** Artifacts with bytes: those of a file, a table as Parquet, an array as a NumPy file. */
export const ARTIFACT_KINDS = ['file', 'table', 'array'] as const;
export type ArtifactKind = (typeof ARTIFACT_KINDS)[number];
export const withArticle = (noun: string) => (/^[aeiou]/.test(noun) ? `an ${noun}` : `a ${noun}`);

interface ParserDefinition {
  meaning: string;
  /** The kind of its artifacts; any: it depends on the file. */
  makes: ArtifactKind | 'any';
  /** What a file of another kind is not. */
  reads: string;
  /** How the names of such files end: by it files in an archive are read. */
  extensions: string[];
  /** Further members of POST /uploads. The worker reads those of stored uploads by it: a new bound belongs into begin-upload.ts. */
  parameters: z.ZodObject;
}

/** The readers work on bytes. */
const oneCharacter = z.string().regex(/^[\t\x20-\x7e]$/, 'must be one ASCII character or a tab');

/** PostgreSQL stores neither NUL nor halves of a character. */
const storableText = (longest: number) =>
  z
    .string()
    .max(longest)
    .refine(text => !/[\0\p{Surrogate}]/u.test(text), 'must be well-formed Unicode without NUL');

const csvParameters = z
  .strictObject({
    /** One character between values, a space for runs of spaces; found by default. */
    delimiter: oneCharacter.optional(),
    /** Whether the first line names the columns; found by default. */
    header: z.boolean().optional(),
    /** The character around values that contain delimiters or line breaks. */
    quote: oneCharacter.optional(),
    /** By default that of the byte order mark, or UTF-8. */
    encoding: z.enum(ENCODINGS).optional(),
    /** The character before the fraction of a number. */
    decimal: z.enum(['.', ',']).optional(),
    /** The character that lines which are left out begin with. */
    comment: oneCharacter.optional(),
    /** Lines at the beginning that are left out. */
    skip: z.number().int().min(0).max(1_000_000).optional(),
    /** Whether the second row names units. */
    units: z.boolean().optional(),
    /** The texts that mean a missing value; by default what is empty, and in a column of text not in quotes. */
    nulls: z.array(storableText(100)).max(20).optional(),
    /** At most so many malformed rows are left out and listed; one more, and the file is refused. */
    tolerance: z.number().int().min(0).max(1_000_000).optional(),
    /** Read every column as text. */
    text: z.boolean().optional(),
    /** The types of columns, by name; a value that a type does not hold is an error. Found by default. */
    types: z
      .record(storableText(1_000), z.enum(COLUMN_TYPES))
      .refine(types => Object.keys(types).length <= 2_500, 'must name at most 2,500 columns')
      .optional(),
  })
  .refine(({ units, header }) => !units || header !== false, {
    message: 'must not be false where "units" names the second row',
    path: ['header'],
  });

/**
 * Every parser with its parameters. All but blob are workers/parsers/formats/(name).ts, typed from this entry; a new one
 * needs no other change.
 */
export const PARSERS = {
  blob: {
    meaning: 'keeps each file as it is',
    makes: 'file',
    reads: 'any file',
    extensions: [],
    parameters: z.strictObject({}),
  },
  csv: {
    meaning: 'reads each file as a table of comma-separated values (RFC 4180)',
    makes: 'table',
    reads: 'text',
    extensions: ['csv', 'tsv'],
    parameters: csvParameters,
  },
  json: {
    meaning: 'reads each file as a table of records: a JSON array of objects',
    makes: 'table',
    reads: 'text',
    extensions: ['json'],
    parameters: z.strictObject({}),
  },
  ndjson: {
    meaning: 'reads each file as a table of records: JSON objects, one a line',
    makes: 'table',
    reads: 'text',
    extensions: ['ndjson', 'jsonl'],
    parameters: z.strictObject({}),
  },
  parquet: {
    meaning: 'reads each Parquet file as a table',
    makes: 'table',
    reads: 'a Parquet file',
    extensions: ['parquet', 'pq'],
    parameters: z.strictObject({}),
  },
  npy: {
    meaning: 'reads each NumPy file as a table if it has one dimension, and otherwise as an array',
    makes: 'any',
    reads: 'a NumPy file',
    extensions: ['npy'],
    parameters: z.strictObject({}),
  },
  xlsx: {
    meaning: 'reads each sheet of an Excel workbook as a table',
    makes: 'any',
    reads: 'an XLSX workbook',
    extensions: ['xlsx', 'xlsm'],
    parameters: z.strictObject({
      /** Whether the first row of each sheet names the columns; by default where its values are texts, and one looks like a name. */
      header: z.boolean().optional(),
    }),
  },
  hdf5: {
    meaning: 'reads the datasets of each HDF5 file as tables and arrays',
    makes: 'any',
    reads: 'an HDF5 file',
    extensions: ['h5', 'hdf5', 'he5'],
    parameters: z.strictObject({}),
  },
  netcdf: {
    meaning: 'reads the variables of each netCDF-4 file as tables and arrays, as they are stored',
    makes: 'any',
    reads: 'a netCDF-4 file',
    extensions: ['nc', 'nc4'],
    parameters: z.strictObject({}),
  },
  zip: {
    meaning:
      'reads each file of a ZIP archive by the parser of its name, and keeps others as they are',
    makes: 'any',
    reads: 'a ZIP archive',
    extensions: ['zip', 'npz'],
    /** Those of its CSV files. */
    parameters: csvParameters,
  },
} as const satisfies Record<string, ParserDefinition>;

export type ParserName = keyof typeof PARSERS;
export type ParserParameters<P extends ParserName> = z.output<(typeof PARSERS)[P]['parameters']>;

/** Parsers that read a file's content, in a process of its own. */
export type FileParserName = Exclude<ParserName, 'blob'>;

/** Our name of a parser, of which Slycat's clients say it with a prefix and a suffix: `slycat-csv-parser`. */
export const ourParserName = (name: string): string =>
  /^slycat-(.+)-parser$/.exec(name)?.[1] ?? name;

export function isParserName(name: string): name is ParserName {
  return Object.hasOwn(PARSERS, name);
}

/** The parser of files with this name, such as day.csv or day.csv.gz. */
export function findParserOf(name: string): FileParserName | undefined {
  const ending = /\.([^./]+)(?:\.(?:gz|zst))?$/i.exec(name)?.[1]?.toLowerCase() ?? '';
  const found = Object.entries<ParserDefinition>(PARSERS).find(([, { extensions }]) =>
    extensions.includes(ending),
  );
  return found?.[0] as FileParserName | undefined;
}
