import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Programs that tests use when they are there, and the Debian package that has each. */
export const TEST_PROGRAMS = {
  sshd: 'openssh-server',
  ssh: 'openssh-client',
  'redis-server': 'redis-server',
  ffmpeg: 'ffmpeg',
  busybox: 'busybox',
  ksh: 'ksh',
  zsh: 'zsh',
  tcsh: 'tcsh',
  fish: 'fish',
  shellcheck: 'shellcheck',
} as const;

export type TestProgram = keyof typeof TEST_PROGRAMS;

/** The absolute path of a program, from PATH and the folders of servers; undefined where it is missing. */
export function findProgram(name: string): string | undefined {
  const folders = [
    ...(process.env.PATH ?? '').split(delimiter),
    '/usr/local/sbin',
    '/usr/sbin',
    '/sbin',
  ];
  return folders.map(folder => join(folder, name)).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
