import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import postgres from 'postgres';

/** The application names of all connections to this database's server that a process on this machine has. Linux only. */
export async function listConnections(url: string, pid: number): Promise<string[]> {
  const own = findLocalPorts(pid);
  const sql = postgres(url, { max: 1 });
  try {
    const rows = await sql<{ name: string; port: number }[]>`
      select application_name as name, client_port as port from pg_stat_activity
      where client_port is not null order by 1`;
    return rows.filter(({ port }) => own.has(port)).map(({ name }) => name);
  } finally {
    await sql.end({ timeout: 2 });
  }
}

/** The local ports of a process's TCP sockets. */
function findLocalPorts(pid: number): Set<number> {
  const inodes = new Set<string>();
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    try {
      const inode = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1];
      if (inode) inodes.add(inode);
    } catch {
      // Closed meanwhile.
    }
  }
  const ports = new Set<number>();
  for (const line of readFileSync(`/proc/${pid}/net/tcp`, 'utf8').split('\n')) {
    const [, local = '', , , , , , , , inode = ''] = line.trim().split(/\s+/);
    if (inodes.has(inode)) ports.add(Number.parseInt(local.split(':')[1] ?? '', 16));
  }
  return ports;
}
