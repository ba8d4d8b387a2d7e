import { conflict, forbidden, invalid, WindlassError } from '../../shared/errors/errors.ts';

/** What the script says of the path instead of a size. */
const OBSTACLES = ['missing', 'directory', 'special', 'closed', 'unreadable'] as const;
type Obstacle = (typeof OBSTACLES)[number] | 'broken';

export const toObstacle = (said: string): Obstacle =>
  OBSTACLES.find(known => known === said) ?? 'broken';

export function toReadError(path: string, found: Obstacle): WindlassError {
  switch (found) {
    case 'missing':
      return new WindlassError('not_found', {
        detail: `there is no ${path} on the host.`,
        hint: 'Check the path; it is read as the account of the session sees it.',
      });
    case 'directory':
    case 'special':
      return invalid(
        `${path} is ${found === 'directory' ? 'a directory' : 'no regular file'}.`,
        'Give the path of a file.',
      );
    case 'closed':
      return forbidden(
        `the account on the host may not enter a folder on the way to ${path}.`,
        "Change that folder's permissions, or open a session as another account.",
      );
    case 'unreadable':
      return forbidden(
        `the account on the host may not read ${path}.`,
        "Change the file's permissions, or open a session as another account.",
      );
    case 'broken':
      return new WindlassError('remote_connection_failed', {
        detail: `${path} could not be read to its end.`,
        hint: "Check the host's disk, then try again.",
      });
  }
}

export const unsized = (path: string) =>
  invalid(`the host does not tell how long ${path} is.`, 'Read it by a command, such as cat.');

/** `said`: the size that the host tells. */
export const belied = ({ path, said }: { path: string; said: number }) =>
  conflict(
    `${path} has fewer bytes than the ${said} that its host tells.`,
    'Read it by a command, such as cat.',
  );

/** Not `remote_connection_failed`: whoever tries that again would wait as long again. */
export const neverEnds = (path: string, ms: number) =>
  new WindlassError('time_limit', {
    detail: `the host did not end the reading of ${path} within ${ms / 1_000} s.`,
    hint: "Have the account's start-up files leave nothing running that holds its standard output, or read it by a command.",
  });

export const tooSilent = (path: string, ms: number) =>
  new WindlassError('time_limit', {
    detail: `the host sent nothing of ${path} for ${ms / 1_000} s.`,
    hint: 'Check that the disk of the path answers on the host, then try again.',
  });

export function connectionLost(path: string, cause?: unknown): WindlassError {
  return new WindlassError('remote_connection_failed', {
    detail: `the connection was lost while ${path} was read.`,
    hint: 'Try again.',
    cause,
  });
}
