import { realpathSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import { WindlassError } from '../../../clients/typescript/src/error.ts';
import { openFile } from '../../../clients/typescript/src/node.ts';
import type { Session } from '../../../clients/typescript/src/session.ts';
import { CommandError } from '../../command-error.ts';
import type { ProgressLine } from '../progress.ts';
import { shortHash } from './short-hash.ts';
import { startOver } from './start-over.ts';

export interface Sending {
  session: Session;
  /** Here. */
  file: string;
  /** Absolute, there. */
  target: string;
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
      throw new CommandError(`${file} cannot be read.`, { cause });
    });
    try {
      const what = JSON.stringify([hostname(), realpathSync(file), target]);
      const { size } = await session.writeFile(target, source, {
        ...{ parents, mode: statSync(file).mode & 0o777, attempts: Infinity },
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

const isWithoutFolder = (error: unknown): error is WindlassError =>
  error instanceof WindlassError && error.code === 'not_found';
