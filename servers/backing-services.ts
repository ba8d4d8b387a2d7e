import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import type { Cluster } from '../cli/embedded-postgres/cluster.ts';
import { startServerProcess } from './server-process.ts';

/** Starts the servers that a fleet needs, each on a port of 127.0.0.1. They end with this process. */

const PATH = '/usr/local/bin:/usr/bin:/bin';

/** Starts PostgreSQL on this cluster, without a supervisor. By default there is room for several stacks of ten processes. */
export function launchPostgres(
  cluster: Cluster,
  port: number,
  connections = 400,
): Promise<ChildProcess> {
  const { directory, binaries, user } = cluster;
  const settings = {
    listen_addresses: '127.0.0.1',
    port,
    unix_socket_directories: '',
    max_connections: connections,
    // Only a crash of the machine could lose data.
    fsync: 'off',
  };
  return startServerProcess({
    program: binaries.postgres,
    args: ['-D', directory, ...listArgs('-c', settings)],
    env: { PATH, LC_ALL: 'C', TZ: 'UTC' },
    cwd: directory,
    user: user && { uid: user.uid, gid: user.gid },
    isReady: printed => /ready to accept (read-only )?connections/.test(printed),
  });
}

function listArgs(flag: string, settings: Record<string, string | number>): string[] {
  return Object.entries(settings).flatMap(([name, value]) => [flag, `${name}=${value}`]);
}

interface ServerLaunch {
  /** Absolute path of the program. */
  program: string;
  /** The data directory. */
  directory: string;
  port: number;
}

/** Starts Redis without AOF and snapshots: it loses its data when it ends. */
export function launchRedis({ program, directory, port }: ServerLaunch): Promise<ChildProcess> {
  const settings = {
    bind: '127.0.0.1',
    port,
    dir: directory,
    save: '',
    appendonly: 'no',
    'maxmemory-policy': 'noeviction',
  };
  return startServerProcess({
    program,
    args: Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]),
    env: { PATH },
    isReady: printed => printed.includes('Ready to accept connections'),
  });
}

interface MinioLaunch extends ServerLaunch {
  accessKey: string;
  secretKey: string;
  /** The folder for objects. Default: `drive` in the directory. */
  drive?: string;
}

export function launchMinio(launch: MinioLaunch): Promise<ChildProcess> {
  const { program, directory, port, accessKey, secretKey } = launch;
  const address = `127.0.0.1:${port}`;
  return startServerProcess({
    program,
    args: [
      'server',
      launch.drive ?? join(directory, 'drive'),
      ...['--address', address, '--certs-dir', join(directory, 'certs')],
    ],
    env: {
      PATH,
      HOME: directory,
      MINIO_ROOT_USER: accessKey,
      MINIO_ROOT_PASSWORD: secretKey,
      MINIO_BROWSER: 'off',
      // No requests for newer versions.
      MINIO_UPDATE: 'off',
    },
    isReady: async () => {
      const signal = AbortSignal.timeout(2_000);
      return (await fetch(`http://${address}/minio/health/cluster`, { signal })).ok;
    },
  });
}
