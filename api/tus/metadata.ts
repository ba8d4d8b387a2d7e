import { isParserName, ourParserName, PARSERS } from '../../shared/uploads/parsers.ts';
import { parseMetadata } from './protocol.ts';

/** What tus clients say of a file by themselves; nothing here depends on it. */
const DESCRIPTIVE = new Set(['name', 'type', 'filename', 'filetype', 'relativePath']);

/**
 * The body of POST /uploads that the metadata stand for. `aid` is the name of the one file; `input` is false where it
 * is absent; a parser's parameter is JSON where the parser takes no text.
 */
export function uploadFromMetadata(header: string): Record<string, unknown> {
  const { mid, parser, aid, input, ...given } = Object.fromEntries(
    [...parseMetadata(header)].filter(([key]) => !DESCRIPTIVE.has(key)),
  );
  const known = parser && ourParserName(parser);
  const shape = known && isParserName(known) ? PARSERS[known].parameters.shape : {};
  const parameters = Object.entries(given).map(([key, text]) => {
    const schema = Object.hasOwn(shape, key)
      ? (shape as Record<string, { safeParse(value: unknown): { success: boolean } }>)[key]
      : undefined;
    return [key, schema && !schema.safeParse(text).success ? parseJson(text) : text];
  });
  return {
    mid,
    parser,
    aids: aid === undefined ? undefined : [aid],
    input: input === undefined ? false : parseJson(input),
    ...Object.fromEntries(parameters),
  };
}

/** The text itself where it is no JSON, so that the parser's schema names the field. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
