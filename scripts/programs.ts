import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { isExecutable } from '../shared/process/is-executable.ts';

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
  csh: 'csh',
  fish: 'fish',
  shellcheck: 'shellcheck',
  nginx: 'nginx-light',
  openssl: 'openssl',
  'docker-compose': 'docker-compose',
  chromium: 'chromium',
  python3: 'python3-venv',
  script: 'bsdutils',
  spin: 'spin',
  zstd: 'zstd',
  pgbouncer: 'pgbouncer',
  'systemd-analyze': 'systemd',
  // With it comes the module of PAM that asks for its codes.
  'google-authenticator': 'libpam-google-authenticator',
  slurmctld: 'slurmctld',
  slurmd: 'slurmd',
  sbatch: 'slurm-client',
  munged: 'munge',
  // With the headers of C, which the package gcc only recommends.
  gcc: 'build-essential',
} as const;

export type TestProgram = keyof typeof TEST_PROGRAMS;

/** Programs that Debian lacks, and the Go package that has each: built once, where `go` is, into PROGRAM_CACHE. */
export const BUILT_PROGRAMS = {
  minio: 'github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c',
} as const;

export type BuiltProgram = keyof typeof BUILT_PROGRAMS;

/** Outside the checkout: what took minutes to build outlives it. */
export const CACHE = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'windlass');
export const PROGRAM_CACHE = join(CACHE, 'bin');

/** A Python environment of its own; scripts/schemathesis.txt pins all that is in it. */
export const SCHEMATHESIS = '4.32.5';
export const SCHEMATHESIS_FOLDER = join(CACHE, 'schemathesis', SCHEMATHESIS);

/** The Python that has Schemathesis: to be called with `-m schemathesis.cli`. */
export function findSchemathesis(): string | undefined {
  const python = join(SCHEMATHESIS_FOLDER, 'bin', 'python');
  return isExecutable(python) ? python : undefined;
}

/** The absolute path of a program, from PATH and the folders of servers; undefined where it is missing. */
export function findProgram(name: string): string | undefined {
  const folders = [
    ...(process.env.PATH ?? '').split(delimiter),
    '/usr/local/sbin',
    '/usr/sbin',
    '/sbin',
    PROGRAM_CACHE,
  ];
  return folders.map(folder => join(folder, name)).find(isExecutable);
}
