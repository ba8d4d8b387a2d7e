import { readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { parse, populate } from 'dotenv';
import { ConfigError } from '../../shared/settings/config.ts';
import { errnoOf, reasonOf } from '../command-error.ts';

const FILE = '.env';
/** What the parser takes for a name and its value: quoted, or as much as stands before `#`, which begins a comment. */
const ASSIGNMENT =
  /^\s*(?:export\s+)?(?<name>[\w.-]+)(?:\s*=\s*?|:\s+?)(?:(?<quoted>\s*'(?:\\'|[^'])*'|\s*"(?:\\"|[^"])*"|\s*`(?:\\`|[^`])*`)|[^#\r\n]+)?\s*(?<comment>#.*)?$/gm;

/**
 * Adds the settings of `.env` in the current directory to those of the environment, which take precedence. Throws a
 * ConfigError where it cannot be read, since its absence would start another installation, and where a value is cut.
 * Returns the names in it.
 */
export function readDotEnv(environment: NodeJS.ProcessEnv): string[] {
  const text = readFile();
  if (text === undefined) return [];
  const problems = findCutValues(text);
  if (problems.length > 0) throw new ConfigError(problems);
  const parsed = parse(text);
  populate(environment, parsed);
  return Object.keys(parsed);
}

function readFile(): string | undefined {
  try {
    return readFileSync(FILE, 'utf8');
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw new ConfigError([`${FILE} cannot be read by ${ownName()}: ${reasonOf(error)}.`]);
  }
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
function findCutValues(given: string): string[] {
  const text = given.replaceAll(/\r\n?/g, '\n');
  return [...text.matchAll(ASSIGNMENT)].flatMap(({ 0: all, index, groups = {} }) => {
    const { name, quoted, comment } = groups;
    if (comment === undefined || quoted !== undefined) return [];
    const before = text.slice(0, index + all.length - comment.length);
    if (/\s$/.test(before)) return [];
    const line = before.split('\n').length;
    return [`${FILE}, line ${line}: ${name} has a # in a value without quotes. Put it in quotes.`];
  });
}
