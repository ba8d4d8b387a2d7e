import { isDiskFull } from '../../shared/process/disk-errors.ts';
import { CommandError, errnoOf } from '../command-error.ts';

interface Failure {
  /** The output of Postgres or initdb. */
  output: string;
  /** What it should do: follows "could not" in the message. */
  task: string;
  directory: string;
  /** 128 + n for a signal; undefined if its wrapper was killed. */
  code: number | undefined;
}

const EXTERNAL = 'Set DATABASE_URL to use another Postgres.';

const CAUSES: [RegExp, (failure: Failure, match: RegExpExecArray) => [string, string?]][] = [
  [
    /No space left on device|Disk quota exceeded/,
    ({ directory }) => [`the disk of ${directory} is full`, 'Free some space, then start again.'],
  ],
  [
    /could not look up effective user ID (\d+)/,
    (_, match) => [
      `user id ${match[1]} has no entry in /etc/passwd`,
      `Add one, or start as another user. ${EXTERNAL}`,
    ],
  ],
  [
    /Read-only file system/,
    ({ directory }) => [
      `${directory} is on a read-only file system`,
      'Set DATA_DIR to another place.',
    ],
  ],
  [
    /could not (?:map anonymous shared memory|create shared memory segment|fork)[^\n]*/,
    () => ['the machine has no memory left for it', `Free some memory. ${EXTERNAL}`],
  ],
  [
    /(?:data directory|file|directory) "?([^"\n]*)"?[^\n]*(?:Permission denied|has wrong ownership)/,
    (_, match) => [
      `its user may not use ${match[1]}`,
      'Give the whole directory to that user (chown -R).',
    ],
  ],
  [
    /incompatible with server|could not locate a valid checkpoint|invalid checkpoint|PANIC: {2}could not/,
    ({ directory }) => [`the database in ${directory} is damaged`, 'Restore it from a backup.'],
  ],
];

/** An error for people, from the output of a Postgres that failed. */
export function translatePostgresError(failure: Failure): CommandError {
  for (const [pattern, explain] of CAUSES) {
    const match = pattern.exec(failure.output);
    if (!match) continue;
    const [reason, hint] = explain(failure, match);
    return new CommandError(`Postgres could not ${failure.task}: ${reason}.`, { hint });
  }
  return new CommandError(`Postgres could not ${failure.task}: ${findLastMessage(failure)}`, {
    hint: EXTERNAL,
  });
}

/** An error for people, where the file system refused something; returns other errors unchanged. */
export function translateSystemError(error: unknown, dataDir: string): unknown {
  if (error instanceof CommandError) return error;
  const code = errnoOf(error);
  if (isDiskFull(error)) {
    return new CommandError(`The disk of ${dataDir} is full.`, {
      hint: 'Free some space, then start again.',
      cause: error,
    });
  }
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS') {
    // A failed spawn names the program instead of its working directory.
    const { path = dataDir, syscall = '' } = error as NodeJS.ErrnoException;
    const place = syscall.startsWith('spawn') ? dataDir : path;
    return new CommandError(
      `${place} cannot be used: ${code === 'EROFS' ? 'read-only file system' : 'permission denied'}.`,
      {
        hint: 'Start Windlass as the user the data directory belongs to, or set another DATA_DIR.',
        cause: error,
      },
    );
  }
  return error;
}

function findLastMessage({ output, code }: Failure): string {
  const lines = output.trim().split('\n');
  const line = lines.findLast(text => /\b(?:FATAL|PANIC|ERROR|error):/.test(text)) ?? lines.at(-1);
  if (line) return line.replace(/^.*?\b(?:FATAL|PANIC|ERROR|error):\s*/, '').replace(/\.?$/, '.');
  return code !== undefined && code >= 128
    ? `it was killed by signal ${code - 128}.`
    : `exit code ${code}.`;
}
