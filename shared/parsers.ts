import { z } from 'zod';

interface ParserDefinition {
  meaning: string;
  /** What the artifacts become. */
  makes: 'file' | 'table';
  /** Members that POST /uploads takes beside its own. */
  parameters: z.ZodObject;
}

/** The readers go by bytes. */
const oneCharacter = z.string().regex(/^[\t\x20-\x7e]$/, 'must be one ASCII character or a tab');

/**
 * Every parser: what it takes. Its work is workers/parsers/(name).ts, typed against this entry; nothing else needs to
 * know a new one.
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
      /** One character between values; found out where it is not given. */
      delimiter: oneCharacter.optional(),
      /** Whether the first line names the columns; found out where it is not given. */
      header: z.boolean().optional(),
      /** The character around values that hold delimiters or line breaks. */
      quote: oneCharacter.optional(),
      /** Texts that stand for a missing value. */
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
    }),
  },
} as const satisfies Record<string, ParserDefinition>;

export type ParserName = keyof typeof PARSERS;
export type ParserParameters<P extends ParserName> = z.output<(typeof PARSERS)[P]['parameters']>;

export function isParserName(name: string): name is ParserName {
  return Object.hasOwn(PARSERS, name);
}
