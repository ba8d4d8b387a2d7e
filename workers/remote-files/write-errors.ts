import { posix } from 'node:path';
import type ssh2 from 'ssh2';
import { forbidden, invalid, WindlassError } from '../../shared/errors/errors.ts';
import { isDirectory, STATUS, statusOf } from './sftp-requests.ts';

/** What a status of the host means for a write. */
export function toWriteError(
  error: unknown,
  path: string,
  words = (error as Error).message,
): unknown {
  const status = statusOf(error);
  if (status === undefined) return error;
  if (status === STATUS.noSuchFile) return noDirectory(posix.dirname(path));
  if (status === STATUS.permissionDenied)
    return forbidden(
      `the account on the host may not write ${path}.`,
      'Choose another directory, or open a session as another account.',
    );
  return invalid(
    `path: ${path} cannot be written: ${words}.`,
    'Check the name of the file, and what the host allows.',
  );
}

export const diskFull = (path: string) =>
  new WindlassError('remote_disk_full', {
    detail: `there is no space on the host, or in the account's quota, to write ${path}; nothing of it stayed.`,
    hint: 'Free some space there, or choose another directory.',
  });

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
