import { stat } from 'node:fs/promises';
import { basename, join, posix } from 'node:path';
import type { Session } from '../../../clients/typescript/src/session.ts';
import { CommandError } from '../../command-error.ts';
import { printRecord } from '../../output/print-records.ts';
import { ProgressLine } from '../../output/progress.ts';
import { connect } from '../connect.ts';
import { fetchFile } from '../copy/fetch-file.ts';
import { findOnHost, type PathOnHost, targetOnHost } from '../copy/path-on-host.ts';
import { sendFile } from '../copy/send-file.ts';
import { ifNoPath } from '../explain-file-error.ts';
import { findOrOpenSession, type LoginChoice } from '../find-session.ts';

export interface CopyOptions extends LoginChoice {
  parents?: boolean;
  json?: boolean;
}

/**
 * `windlass cp`: a file from a host or to one, as `HOST:PATH`; there whole, or as before. Started again after it was killed,
 * it goes on where it was.
 */
export async function copyFile(from: string, to: string, options: CopyOptions): Promise<void> {
  const source = readPath(from);
  const target = readPath(to);
  if (source.host !== undefined && target.host !== undefined)
    throw new CommandError('Both are on hosts.', {
      hint: 'Copy it here first, then to the other.',
    });
  if (source.host === undefined && target.host === undefined)
    throw new CommandError('One of the two must be on a host.', { hint: 'Name it as HOST:PATH.' });
  const windlass = await connect();
  const session = await findOrOpenSession(windlass, source.host ?? target.host ?? '', options);
  const line = new ProgressLine();
  const parents = options.parents ?? false;
  try {
    const bytes =
      source.host !== undefined
        ? await fetchFile({
            session,
            host: source.host,
            line,
            parents,
            source: await findFile(session, source.path, from),
            target: await targetHere(target.path, posix.basename(source.path)),
          })
        : await sendFile({
            session,
            file: source.path,
            line,
            parents,
            target: await targetOnHost(session, inHome(target.path), basename(source.path)),
          });
    if (options.json) await printRecord({ from, to, bytes }, options);
  } finally {
    line.end();
  }
}

/** What is copied from a host, which `name` names here. */
async function findFile(session: Session, path: string, name: string): Promise<PathOnHost> {
  const found = await findOnHost(session, inHome(path));
  if (!found.isFolder) return found;
  throw new CommandError(`${name} is a folder.`, {
    hint: 'Give one file: tar packs a folder into one.',
  });
}

/** Reads a path as scp does: a colon after a name without a slash begins a path on that host. */
function readPath(text: string): { host?: string; path: string } {
  const [, host, path = text] = /^([^/:]+):(.*)$/s.exec(text) ?? [];
  return { host, path };
}

/** Without the `~/` of a path of the account's home. */
const inHome = (path: string) => path.replace(/^~(\/|$)/, '');

/** A file keeps its name in a folder, as with cp. */
const targetHere = async (path: string, name: string) =>
  /\/$/.test(path) || (await isFolder(path)) ? join(path, name) : path;

const isFolder = async (path: string) => (await stat(path).catch(ifNoPath))?.isDirectory() ?? false;
