import { statSync } from 'node:fs';
import { basename, join, posix } from 'node:path';
import { openFile } from '../../../clients/typescript/src/node.ts';
import type { Session } from '../../../clients/typescript/src/session.ts';
import { CommandError } from '../../command-error.ts';
import { connect } from '../connect.ts';
import { findOrOpenSession, type LoginChoice } from '../find-session.ts';
import { printRecord } from '../print-records.ts';
import { ProgressLine } from '../progress.ts';
import { saveFile } from '../save-file.ts';

export interface CopyOptions extends LoginChoice {
  parents?: boolean;
  json?: boolean;
}

/** `windlass cp`: a file from a host or to one, as `HOST:PATH`; there whole, or as before. */
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
        ? await fetchFile(session, source.path, target.path, line)
        : await sendFile(session, source.path, { path: target.path, line, ...options });
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

async function fetchFile(
  session: Session,
  path: string,
  given: string,
  line: ProgressLine,
): Promise<number> {
  const target = isFolder(given) ? join(given, posix.basename(path)) : given;
  const bytes = session.readFile(await toAbsolute(session, path));
  let received = 0;
  const counted = async function* () {
    for await (const piece of bytes) {
      received += piece.length;
      line.showText(`${received} bytes received`);
      yield piece;
    }
  };
  await saveFile(target, counted());
  return received;
}

async function sendFile(
  session: Session,
  file: string,
  { path, parents, line }: { path: string; parents?: boolean; line: ProgressLine },
): Promise<number> {
  const source = await openFile(file).catch((cause: unknown) => {
    throw new CommandError(`${file} cannot be read.`, { cause });
  });
  try {
    const absolute = await toAbsolute(session, path);
    const target = /(^|\/)$/.test(path) ? posix.join(absolute, basename(file)) : absolute;
    const { mode, size } = statSync(file);
    await session.writeFile(target, source, {
      ...{ parents, mode: mode & 0o777 },
      onProgress: ({ sent, total }) =>
        line.show(total === 0 ? 1 : sent / total, `of ${total} bytes sent`),
    });
    return size;
  } finally {
    await source.close();
  }
}

/** A path that is relative, or begins with `~/`, is one of the account's home. */
async function toAbsolute(session: Session, path: string): Promise<string> {
  if (path.startsWith('/')) return path;
  const { output } = await session.run(`/bin/sh -c 'cd && pwd'`).wait();
  return posix.join(output.replace(/\n$/, ''), path.replace(/^~(\/|$)/, ''));
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
