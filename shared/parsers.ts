import { z } from 'zod';

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

interface ParserDefinition {
  meaning: string;
  /** The kind of its artifacts. */
  makes: 'file' | 'table';
  /** Further members of POST /uploads. */
  parameters: z.ZodObject;
}

/** The readers work on bytes. */
const oneCharacter = z.string().regex(/^[\t\x20-\x7e]$/, 'must be one ASCII character or a tab');

/**
 * Every parser with its parameters. It runs in workers/parsers/(name).ts, typed from this entry; a new parser needs no
 * other change.
 */
export const PARSERS = {
  blob: {
    meaning: 'keeps each file as it is',
    makes: 'file',
    parameters: z.strictObject({}),
  },
  csv: {
    meaning: 'reads each file as a table of comma-separated values (RFC 4180)',
    makes: 'table',
    parameters: z.strictObject({
      /** One character between values; detected by default. */
      delimiter: oneCharacter.optional(),
      /** Whether the first line names the columns; detected by default. */
      header: z.boolean().optional(),
      /** The character around values that contain delimiters or line breaks. */
      quote: oneCharacter.optional(),
      /** Texts that mean a missing value. */
      nulls: z
        .array(
          z
            .string()
            .max(100)
            .refine(
              text => !/[\0\p{Surrogate}]/u.test(text),
              'must be well-formed Unicode without NUL',
            ),
        )
        .max(20)
        .optional(),
      /** Read every column as text. */
      text: z.boolean().optional(),
      /** The types of columns, by name; a value that a type does not hold is an error. Found by default. */
      types: z
        .record(z.string().max(1_000), z.enum(COLUMN_TYPES))
        .refine(types => Object.keys(types).length <= 2_500, 'must name at most 2,500 columns')
        .optional(),
    }),
  },
} as const satisfies Record<string, ParserDefinition>;

export type ParserName = keyof typeof PARSERS;
export type ParserParameters<P extends ParserName> = z.output<(typeof PARSERS)[P]['parameters']>;

export function isParserName(name: string): name is ParserName {
  return Object.hasOwn(PARSERS, name);
}
