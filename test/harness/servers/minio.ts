import { randomBytes } from 'node:crypto';
import { canBuild } from '../../../scripts/install-programs.ts';
import { BUILT_PROGRAMS, findProgram } from '../../../scripts/programs.ts';
import { launchMinio } from '../../../servers/backing-services.ts';
import { endChild } from '../../../servers/processes.ts';
import { makeTempDir } from '../files/temp-dir.ts';
import type { SkipReason } from '../skip.ts';
import { startOnFreePort } from './start-on-free-port.ts';

export interface TestMinio {
  /** `http://127.0.0.1:PORT`, as S3_ENDPOINT takes it. */
  endpoint: string;
  host: '127.0.0.1';
  port: number;
  accessKey: string;
  secretKey: string;
  /** Ends the server as a crash does; what it stored is kept. */
  down(): Promise<void>;
  /** Starts it again on the same data and port. */
  up(): Promise<void>;
  /** Ends it; everything it stored is removed. */
  stop(): Promise<void>;
}

/** Undefined when there is a MinIO server on this machine, and otherwise why the test has to be skipped. */
export function missingMinio(): SkipReason | undefined {
  if (findProgram('minio') !== undefined) return undefined;
  return { reason: `needs minio (go install ${BUILT_PROGRAMS.minio})`, obtainable: canBuild() };
}

/** Starts a MinIO of its own, with one empty drive (`drive`: a folder), on a free port of 127.0.0.1. */
export async function startMinio(options: { drive?: string } = {}): Promise<TestMinio> {
  const program = findProgram('minio');
  if (program === undefined) throw new Error('There is no minio; see missingMinio().');
  const directory = makeTempDir('minio');
  const accessKey = 'windlass-test';
  const secretKey = randomBytes(12).toString('hex');
  const start = (port: number) =>
    launchMinio({
      program,
      directory: directory.path,
      drive: options.drive,
      port,
      accessKey,
      secretKey,
    });
  const { port, started } = await startOnFreePort(start);
  let running = started;
  const minio: TestMinio = {
    endpoint: `http://127.0.0.1:${port}`,
    host: '127.0.0.1',
    port,
    accessKey,
    secretKey,
    async down() {
      await endChild(running, 0);
    },
    async up() {
      running = await start(port);
    },
    async stop() {
      await minio.down();
      directory.remove();
    },
  };
  return minio;
}
