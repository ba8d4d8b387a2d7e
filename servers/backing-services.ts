import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import type { Cluster } from '../cli/embedded-postgres/cluster.ts';
import { startServerProcess } from './server-process.ts';

/** Each starts one server of a fleet on a port of 127.0.0.1, which ends with this process, and waits until it serves. */

const PATH = '/usr/local/bin:/usr/bin:/bin';

/** The PostgreSQL of this cluster, plain: nothing starts it again. */
export function launchPostgres(cluster: Cluster, port: number): Promise<ChildProcess> {
  const { directory, binaries, user } = cluster;
  const settings = {
    listen_addresses: '127.0.0.1',
    port,
    unix_socket_directories: '',
    // Several services of ten processes each.
    max_connections: 400,
    // A process that is killed loses nothing of this; only the machine would.
    fsync: 'off',
  };
  return startServerProcess({
    program: binaries.postgres,
    args: ['-D', directory, ...listArgs('-c', settings)],
    env: { PATH, LC_ALL: 'C', TZ: 'UTC' },
    cwd: directory,
    user: user && { uid: user.uid, gid: user.gid },
    isReady: printed => printed.includes('ready to accept connections'),
  });
}

function listArgs(flag: string, settings: Record<string, string | number>): string[] {
  return Object.entries(settings).flatMap(([name, value]) => [flag, `${name}=${value}`]);
}

interface Place {
  /** Absolute path of the program. */
  program: string;
  /** What it stores lies here. */
  directory: string;
  port: number;
}

/** A Redis with neither AOF nor snapshots: killed, all it held is gone. */
export function launchRedis({ program, directory, port }: Place): Promise<ChildProcess> {
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

interface MinioPlace extends Place {
  accessKey: string;
  secretKey: string;
  /** Its one drive, a folder. Default: one in the directory. */
  drive?: string;
}

export function launchMinio(place: MinioPlace): Promise<ChildProcess> {
  const { program, directory, port, accessKey, secretKey } = place;
  const address = `127.0.0.1:${port}`;
  return startServerProcess({
    program,
    args: [
      'server',
      place.drive ?? join(directory, 'drive'),
      ...['--address', address, '--certs-dir', join(directory, 'certs')],
    ],
    env: {
      PATH,
      HOME: directory,
      MINIO_ROOT_USER: accessKey,
      MINIO_ROOT_PASSWORD: secretKey,
      MINIO_BROWSER: 'off',
      // Neither looks for a newer version nor calls anyone.
      MINIO_UPDATE: 'off',
    },
    isReady: async () => {
      const signal = AbortSignal.timeout(2_000);
      return (await fetch(`http://${address}/minio/health/cluster`, { signal })).ok;
    },
  });
}
