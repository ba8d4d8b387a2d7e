import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram } from '../../../scripts/programs.ts';
import { endChild } from '../../../servers/processes.ts';
import { startServerProcess } from '../../../servers/server-process.ts';
import { makeTempDir } from '../files/temp-dir.ts';
import { startOnFreePort } from '../servers/start-on-free-port.ts';

export interface TestPgBouncer {
  /** The URL by which it leads to the same database. */
  url: string;
  stop(): Promise<void>;
}

/** Starts a PgBouncer in front of the database at this URL, which gives each transaction another connection. */
export async function startPgBouncer(
  target: string,
  settings: Record<string, string> = {},
): Promise<TestPgBouncer> {
  const program = findProgram('pgbouncer');
  if (program === undefined) throw new Error('There is no pgbouncer; see missingPrograms().');
  const directory = makeTempDir('pgbouncer');
  // It refuses to run as root.
  const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : undefined;
  chmodSync(directory.path, 0o755);
  const { hostname, port: serverPort, username, password, pathname } = new URL(target);
  const file = (name: string) => join(directory.path, name);
  writeFileSync(file('users.txt'), `"${username}" "${password}"\n`);
  const { port, started } = await startOnFreePort(port => {
    const lines = {
      listen_addr: '127.0.0.1',
      listen_port: port,
      unix_socket_dir: '',
      auth_type: 'plain',
      auth_file: file('users.txt'),
      pool_mode: 'transaction',
      ...settings,
    };
    const text = Object.entries(lines).map(([name, value]) => `${name} = ${value}`);
    writeFileSync(
      file('pgbouncer.ini'),
      `[databases]\n* = host=${hostname} port=${serverPort}\n[pgbouncer]\n${text.join('\n')}\n`,
    );
    return startServerProcess({
      program,
      args: [file('pgbouncer.ini')],
      env: {},
      user,
      isReady: printed => printed.includes('process up'),
    });
  });
  return {
    url: `postgres://${username}:${password}@127.0.0.1:${port}${pathname}`,
    async stop() {
      await endChild(started, 0);
      directory.remove();
    },
  };
}
