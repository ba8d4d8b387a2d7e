import { quoteWord } from '../../clients/typescript/src/pieces/script-on-host.ts';
import type { Session } from '../../clients/typescript/src/session.ts';
import { oneLine } from '../../shared/jobs/labels.ts';
import { sortNaturally } from '../../shared/sort-naturally.ts';
import { CommandError } from '../command-error.ts';

/** In the name of a file, such as `%05d.png`: the folder of a file may have such a text in its own. */
const NUMBER = /%0?\d{0,2}d/;
/** The home of an account, which a shell puts in its place where it is not quoted. */
const HOME = /^~[\w.-]*(?:\/|$)/;
/** UTF-16 units of the name of a job. */
const LONGEST_NAME = 200;

/**
 * The frames of a video as the service takes them. It expands a pattern itself; several words are listed by the host's
 * shell, to which all but `*` and a leading `~` is quoted.
 */
export async function findFrames(
  session: Session,
  words: string[],
): Promise<{ pattern: string } | { images: string[] }> {
  const [word = ''] = words;
  if (words.length > 1) return { images: await listOnHost(session, words) };
  const slash = word.lastIndexOf('/') + 1;
  const [folder, name] = [word.slice(0, slash), word.slice(slash)];
  const isNumbered = NUMBER.test(name);
  // In a folder whose name is looked for.
  if (isNumbered && folder.includes('*') && !name.includes('*'))
    return { pattern: `${await findFolder(session, { word, folder })}${name}` };
  const path = await resolveOnHost(session, word);
  return isNumbered || word.includes('*') ? { pattern: path } : { images: [path] };
}

async function findFolder(
  session: Session,
  { word, folder }: { word: string; folder: string },
): Promise<string> {
  const folders = await listOnHost(session, [folder]);
  const [found = ''] = folders;
  if (folders.length === 1) return found;
  throw new CommandError(`The frames of ${word} are in several folders: ${folders.join(', ')}.`, {
    hint: 'Name one of them, or give a pattern with * instead of %d to take the frames of all.',
  });
}

/** The absolute path: a relative one is in the home of the account, where its commands begin. */
async function resolveOnHost(session: Session, word: string): Promise<string> {
  if (word.startsWith('/')) return word;
  const [tilde = ''] = HOME.exec(word) ?? [];
  const [home = ''] = await listOnHost(session, [tilde || '~']);
  return `${home.replace(/(?<!\/)\/+$/, '')}/${word.slice(tilde.length)}`;
}

/**
 * The files that match words such as `~/frames/*.png`, those of each word in the order that the service has. A name without
 * `*`, or a dangling link, stays even where there is no such file: the service reports it.
 */
async function listOnHost(session: Session, words: string[]): Promise<string[]> {
  const list = `cd || exit 1; printf '%s\\0' "$PWD"; ${words.map(listWord).join('; ')}; true`;
  // Whatever the account's shell is.
  const command = `sh -c ${quoteWord(list)}`;
  const { output, truncated } = await session.run(command, { name: nameOf(words) }).wait();
  if (truncated)
    throw new CommandError('These are too many frames.', {
      hint: 'Give a pattern such as %05d.png alone, or fewer frames.',
    });
  const [home, ...printed] = output.split('\0');
  const files: string[][] = [[]];
  for (const line of printed) {
    if (line.startsWith('+')) files.at(-1)?.push(line.slice(1));
    else if (line === '-') files.push([]);
  }
  return words.flatMap((word, place) => {
    const found = sortNaturally(files[place] ?? []);
    if (found.length > 0) return found;
    const where = /^[/~]/.test(word) ? '' : ` in ${home}`;
    throw new CommandError(`The host has no file like ${word}${where}.`, {
      hint: 'Quote patterns, so that the shell here leaves them as they are.',
    });
  });
}

/** The name of the job, so that lists of commands show no script that nobody typed. */
const nameOf = (words: string[]) =>
  oneLine(`find frames: ${words.join(' ')}`)
    .slice(0, LONGEST_NAME)
    .replace(/\p{Surrogate}/gu, '\ufffd');

/** A script that prints the absolute paths of a word, each after a `+`, and `-` at last. */
function listWord(word: string): string {
  const [tilde = ''] = HOME.exec(word) ?? [];
  const parts = word.slice(tilde.length).split('*');
  const glob = tilde + parts.map(part => (part === '' ? '' : quoteWord(part))).join('*');
  const ifThere = parts.length > 1 ? '{ [ -e "$f" ] || [ -L "$f" ]; } && ' : '';
  const absolute = `case $f in /*) ;; *) f=$PWD/$f ;; esac`;
  return `for f in ${glob}; do ${absolute}; ${ifThere}printf '+%s\\0' "$f"; done; printf '%s\\0' -`;
}
