import { z } from 'zod';

interface ParserDefinition {
  meaning: string;
  /** What the artifacts become. */
  makes: 'file' | 'table';
  /** Members that POST /uploads takes beside its own. */
  parameters: z.ZodObject;
}

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
      delimiter: z.string().length(1).optional(),
      /** Whether the first line names the columns; found out where it is not given. */
      header: z.boolean().optional(),
      /** The character around values that hold delimiters or line breaks. */
      quote: z.string().length(1).optional(),
      /** Texts that stand for a missing value. */
      nulls: z.array(z.string().max(100)).max(20).optional(),
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
