import { statSync } from 'node:fs';
import { basename, join, posix } from 'node:path';
import { CommandError } from '../../command-error.ts';
import { connect } from '../connect.ts';
import { fetchFile } from '../copy/fetch-file.ts';
import { sendFile, toAbsolute } from '../copy/send-file.ts';
import { findOrOpenSession, type LoginChoice } from '../find-session.ts';
import { printRecord } from '../print-records.ts';
import { ProgressLine } from '../progress.ts';

export interface CopyOptions extends LoginChoice {
  parents?: boolean;
  json?: boolean;
}

/**
 * `windlass cp`: a file from a host or to one, as `HOST:PATH`; there whole, or as before. Started again after it was killed,
 * it goes on where it was.
 */
export async function copyFile(from: string, to: string, options: CopyOptions): Promise<void> {
  const source = readPlace(from);
  const target = readPlace(to);
  if ((source.host === undefined) === (target.host === undefined))
    throw new CommandError('One of the two must be on a host.', { hint: 'Name it as HOST:PATH.' });
  const windlass = await connect();
  const session = await findOrOpenSession(windlass, source.host ?? target.host ?? '', options);
  const line = new ProgressLine();
  try {
    const bytes =
      source.host !== undefined
        ? await fetchFile({
            ...{ session, host: source.host, line },
            path: await toAbsolute(session, inHome(source.path)),
            target: isFolder(target.path)
              ? join(target.path, posix.basename(source.path))
              : target.path,
          })
        : await sendFile({
            ...{ session, file: source.path, line, parents: options.parents ?? false },
            target: /(^|\/)$/.test(target.path)
              ? posix.join(inHome(target.path), basename(source.path))
              : inHome(target.path),
          });
    if (options.json) await printRecord({ from, to, bytes }, options);
  } finally {
    line.end();
  }
}

/** As scp reads it: a colon after a name without a slash begins a path on that host. */
function readPlace(text: string): { host?: string; path: string } {
  const [, host, path = text] = /^([^/:]+):(.*)$/s.exec(text) ?? [];
  return { host, path };
}

/** Without the `~/` of a path of the account's home. */
const inHome = (path: string) => path.replace(/^~(\/|$)/, '');

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
