import { basename } from 'node:path';
import { findParserOf, type ParserName } from '../../shared/uploads/parsers.ts';
import { CommandError } from '../command-error.ts';

/** Names of what is piped into the program, which say nothing of it. */
const PIPED = /^\/dev\/(?:stdin|fd\/\d+)$/;

/**
 * The parser of files with these names, as the client in Python takes it: `blob` keeps those of other names. What is piped is
 * called as its artifact.
 */
export function findDefaultParser(paths: string[], aids: string[] = []): ParserName {
  const names = paths.map((path, n) => (PIPED.test(path) ? (aids[n] ?? path) : path));
  const [first = '', ...others] = names;
  const parser = parserOf(first);
  for (const other of others)
    if (parserOf(other) !== parser)
      throw new CommandError(
        `${first} is read by the parser ${parser}, and ${other} by ${parserOf(other)}.`,
        { hint: 'Give --parser NAME for all, or upload them one by one.' },
      );
  return parser;
}

/** A text that is sent into a model is one of measurements; one of an archive may be anything. */
const TEXT = /\.txt(?:\.(?:gz|zst))?$/i;

function parserOf(path: string): ParserName {
  const name = basename(path);
  return findParserOf(name) ?? (TEXT.test(name) ? 'csv' : 'blob');
}
