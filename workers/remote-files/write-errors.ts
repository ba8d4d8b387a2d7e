import { posix } from 'node:path';
import type ssh2 from 'ssh2';
import { forbidden, invalid, WindlassError } from '../../shared/errors/errors.ts';
import { isDirectory, STATUS, statusOf } from './sftp-requests.ts';
import { meansFull } from './try-write.ts';

/** What a status of the host means for a write. */
export function toWriteError(error: unknown, path: string): unknown {
  const status = statusOf(error);
  if (status === undefined) return error;
  if (status === STATUS.noSuchFile) return noDirectory(posix.dirname(path));
  if (status === STATUS.permissionDenied) return mayNot(path, 'written');
  return toRefusal((error as Error).message, path, 'written');
}

type Change = 'written' | 'removed';

/** What the host's words mean for a change that it refuses. */
export function toRefusal(words: string, path: string, change: Change): WindlassError {
  if (meansFull(words)) return diskFull(path);
  if (/^(?:Permission denied|Operation not permitted)$/.test(words)) return mayNot(path, change);
  return invalid(
    `path: ${path} cannot be ${change}: ${words}.`,
    'Check the name of the file, and what the host allows.',
  );
}

export const mayNot = (path: string, change: Change) =>
  change === 'written'
    ? forbidden(
        `the account on the host may not write ${path}.`,
        'Choose another directory, or open a session as another account.',
      )
    : forbidden(
        `the account on the host may not remove ${path}.`,
        "Change the directory's permissions, or open a session as another account.",
      );

const diskFull = (path: string) =>
  new WindlassError('remote_disk_full', {
    detail: `there is no space on the host, or in the account's quota, to write ${path}; nothing of the file stayed.`,
    hint: 'Free some space there, or choose another directory.',
  });

export const isShorter = (path: string, { size, stored }: { size: number; stored: number }) =>
  new WindlassError('remote_disk_full', {
    detail: `of the ${size} bytes of ${path} the host stored ${stored}; nothing of the file stayed.`,
    hint: 'Look for space there and in the quota of the account, or choose another directory.',
  });

/** A directory that is made up by a kernel, such as /proc. */
export const takesNoFiles = (directory: string) =>
  invalid(`path: ${directory} takes no new files.`, 'Choose another directory.');

export const isThere = (path: string) =>
  new WindlassError('precondition_failed', {
    detail: `${path} is there already.`,
    hint: 'Leave out If-None-Match to replace it.',
  });

export const noDirectory = (directory: string) =>
  new WindlassError('not_found', {
    detail: `there is no directory ${directory} on the host.`,
    hint: 'Check the path, or give ?parents=true to make it.',
  });

export const isNoDirectory = (path: string) =>
  invalid(`path: ${path} is no directory.`, 'Choose another path.');

export const isNotUtf8 = (path: string) =>
  invalid(
    `path: ${path} holds U+FFFD, which stands for bytes that are not UTF-8.`,
    'Rename what it names on the host, or write it by a command.',
  );

export const noRegularFile = (path: string, found: ssh2.Stats) =>
  invalid(
    `path: ${path} is ${isDirectory(found) ? 'a directory' : 'no regular file'}.`,
    'Give the path of a file.',
  );
