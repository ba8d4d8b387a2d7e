import type { Stats } from 'node:fs';
import { mkdir, open, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { WindlassError } from '../../../clients/typescript/src/error.ts';
import type { Session } from '../../../clients/typescript/src/session.ts';
import { CommandError, ifMissing } from '../../command-error.ts';
import type { ProgressLine } from '../../output/progress.ts';
import { cannotWriteIn, ifNoPath } from '../explain-file-error.ts';
import { saveFile } from '../save-file.ts';
import { PartialFiles } from './partial-file.ts';
import type { PathOnHost } from './path-on-host.ts';
import { startOver } from './start-over.ts';

export interface Fetching {
  session: Session;
  /** Names the host for the user. */
  host: string;
  /** There. */
  source: PathOnHost;
  /** Here. */
  target: string;
  /** Makes the folders that are missing. */
  parents: boolean;
  line: ProgressLine;
}

/**
 * Copies a file from a host, whole or not at all, and returns its size. What a killed process has received is
 * continued, unless the file has changed since.
 */
export async function fetchFile(given: Fetching): Promise<number> {
  await requireFolder(dirname(given.target), given.parents);
  const present = await stat(given.target).catch(ifMissing(undefined));
  if (present && !present.isFile()) return streamFile(given);
  const target = present ? await realpath(given.target) : given.target;
  return startOver(() => fetchOnce({ ...given, target }, modeOf(present, given.source)));
}

/** That of the file which is replaced; the umask is for new ones. */
function modeOf(present: Stats | undefined, { mode }: PathOnHost): number | undefined {
  if (present) return present.mode & 0o777;
  return mode === undefined ? undefined : mode & 0o7777 & ~process.umask();
}

async function requireFolder(path: string, isMade: boolean): Promise<void> {
  if (isMade) await mkdir(path, { recursive: true }).catch(cannotWriteIn(dirname(path)));
  const found = await stat(path).catch(ifNoPath);
  if (!found?.isDirectory())
    throw new CommandError(`There is no folder ${path} here.`, {
      hint: 'Make it, or add --parents.',
    });
}

/** Into a pipe or a device, whose bytes cannot be taken back. */
async function streamFile({ session, source, target, line }: Fetching): Promise<number> {
  let received = 0;
  const count = (length: number) => {
    received += length;
    line.showText(`${received} bytes received`);
  };
  await saveFile(target, counted(session.readFile(source.path), count));
  return received;
}

async function fetchOnce(
  { session, host, source: { path }, target, line }: Fetching,
  mode: number | undefined,
): Promise<number> {
  const partials = new PartialFiles(dirname(target), [host, path, target]);
  const kept = await partials.claim();
  // One byte is requested again: there is no range behind the last one.
  const start = Math.max(0, (kept?.size ?? 0) - 1);
  let at = start;
  let total = 0;
  let tag = kept?.tag;
  const source = session.readFile(path, {
    start,
    tag: kept && `"${kept.tag}"`,
    onBegin: begun => {
      total = start + begun.length;
      tag ??= /^"(\w{1,64})"$/.exec(begun.tag ?? '')?.[1];
    },
  });
  const bytes = counted(source, length => {
    at += length;
    line.show(total === 0 ? 1 : at / total, `of ${total} bytes received`);
  });
  let temporary = kept?.path;
  let file = kept?.file;
  try {
    // Until this byte has come, the state of the others is unknown.
    const first = await bytes.next();
    temporary ??= partials.pathFor(tag);
    // A later process must be able to write to it, even where nobody may write to the file.
    const own = mode === undefined ? undefined : mode | 0o600;
    file ??= await open(temporary, 'wx', own).catch(cannotWriteIn(dirname(target)));
    const all = async function* () {
      if (!first.done) yield first.value;
      yield* bytes;
    };
    await file.truncate(start);
    await writeFile(file, all());
    // Not by its name, which may be another file's by now.
    if (mode !== undefined) await file.chmod(mode);
    await file.sync();
    await file.close();
    await rename(temporary, target);
    return at;
  } catch (error) {
    const isKept = error instanceof WindlassError && error.code !== 'changed' && tag !== undefined;
    if (temporary && !isKept) await rm(temporary, { force: true });
    throw error;
  } finally {
    await file?.close();
    await bytes.return(undefined);
  }
}

async function* counted(
  bytes: AsyncIterable<Uint8Array>,
  count: (length: number) => void,
): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const piece of bytes) {
    count(piece.length);
    yield piece;
  }
}
