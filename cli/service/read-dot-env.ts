import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { parse, populate } from 'dotenv';
import { ConfigError } from '../../shared/settings/config.ts';
import { errnoOf, reasonOf } from '../command-error.ts';

const FILE = '.env';
/**
 * What the parser takes for a name and its value: quoted, or as much as stands before `#`, which begins a comment. The
 * parser would take the line after `NAME:` for its value.
 */
const ASSIGNMENT =
  /^\s*(?:export\s+)?(?<name>[\w.-]+)(?:\s*=\s*?|:[^\S\n]+?)(?:(?<quoted>\s*'(?:\\'|[^'])*'|\s*"(?:\\"|[^"])*"|\s*`(?:\\`|[^`])*`)|[^#\r\n]+)?\s*(?<comment>#.*)?$/gm;

/**
 * Adds the settings of `.env` in the current directory to those of the environment, which take precedence. Throws a
 * ConfigError where a part of it cannot be read, since another installation would start without it, and where a value
 * is cut. Returns the names in it.
 */
export function readDotEnv(environment: NodeJS.ProcessEnv): string[] {
  const text = readFile()?.replaceAll(/\r\n?/g, '\n');
  if (text === undefined) return [];
  const problems = [...findCutValues(text), ...findOtherLines(text)];
  if (problems.length > 0) throw new ConfigError(problems);
  const parsed = parse(text);
  populate(environment, parsed);
  return Object.keys(parsed);
}

function readFile(): string | undefined {
  let bytes: Buffer;
  try {
    bytes = readFileSync(FILE);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw new ConfigError([`${FILE} cannot be read by ${ownName()}: ${reasonOf(error)}.`]);
  }
  // UTF-16 of ASCII is UTF-8, too, where no byte order mark begins it: every other character is NUL.
  if (!isUtf8(bytes) || bytes.includes(0))
    throw new ConfigError([`${FILE} is not in UTF-8. Save it in UTF-8.`]);
  return bytes.toString();
}

/** An account may have a number alone. */
function ownName(): string {
  try {
    return userInfo().username;
  } catch {
    return `user ${process.geteuid?.()}`;
  }
}

/** A comment has a space before it. Any other `#` is of a value, such as a password, whose rest would be dropped. */
function findCutValues(text: string): string[] {
  return [...text.matchAll(ASSIGNMENT)].flatMap(({ 0: all, index, groups = {} }) => {
    const { name, quoted, comment } = groups;
    if (comment === undefined || quoted !== undefined) return [];
    const before = text.slice(0, index + all.length - comment.length);
    if (/\s$/.test(before)) return [];
    const line = before.split('\n').length;
    return [`${FILE}, line ${line}: ${name} has a # in a value without quotes. Put it in quotes.`];
  });
}

/** The parser skips what it does not know. A line may be of a password, and is told by its number alone. */
function findOtherLines(text: string): string[] {
  const others = text.replaceAll(ASSIGNMENT, all => all.replaceAll(/[^\n]/g, '')).split('\n');
  return others.flatMap((line, n) =>
    /^\s*(#|$)/.test(line)
      ? []
      : [
          `${FILE}, line ${n + 1} is neither NAME=value nor a comment. Correct or remove it; a value of several lines stands in quotes.`,
        ],
  );
}
