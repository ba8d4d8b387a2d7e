import { realpathSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import { WindlassError } from '../../../clients/typescript/src/error.ts';
import { openFile } from '../../../clients/typescript/src/node.ts';
import type { Session } from '../../../clients/typescript/src/session.ts';
import { CommandError, reasonOf } from '../../command-error.ts';
import type { ProgressLine } from '../../output/progress.ts';
import type { PathOnHost } from './path-on-host.ts';
import { shortHash } from './short-hash.ts';
import { startOver } from './start-over.ts';

export interface Sending {
  session: Session;
  /** Here. */
  file: string;
  /** There. */
  target: PathOnHost;
  /** Makes the folders that are missing. */
  parents: boolean;
  line: ProgressLine;
}

/**
 * Copies a file to a host, whole or not at all, and returns its size. The pieces of a large one stay there until all
 * have come, so that another process can continue.
 */
export function sendFile({ session, file, target, parents, line }: Sending): Promise<number> {
  return startOver(async () => {
    const source = await openFile(file).catch((cause: unknown) => {
      if (cause instanceof WindlassError) throw cause;
      throw new CommandError(`${file} cannot be read: ${reasonOf(cause)}.`, { cause });
    });
    try {
      const { path } = target;
      const what = JSON.stringify([hostname(), process.geteuid?.(), realpathSync(file), path]);
      const { size } = await session.writeFile(path, source, {
        parents,
        mode: modeOf(file, target),
        attempts: Infinity,
        resume: { what: shortHash(what), state: shortHash(source.state) },
        onProgress: ({ sent, total }) =>
          line.show(total === 0 ? 1 : sent / total, `of ${total} bytes sent`),
      });
      return size;
    } catch (error) {
      throw isWithoutFolder(error) && !parents
        ? new CommandError(error.detail, { hint: 'Make it, or add --parents.' })
        : error;
    } finally {
      await source.close();
    }
  });
}

/** The permissions as cp gives them: a file that is there keeps its own, a new one has those of this one without the account's umask. */
const modeOf = (file: string, { mode, umask }: PathOnHost): number | undefined =>
  mode === undefined ? statSync(file).mode & 0o777 & ~umask : undefined;

const isWithoutFolder = (error: unknown): error is WindlassError =>
  error instanceof WindlassError && error.code === 'not_found';
