import { readdirSync, readFileSync, type Stats, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import { makeTable } from '../clients/tables.ts';
import { makeModel } from '../clients/uploads.ts';
import { startStack } from '../stacks/stack.ts';
import { useRemoteStack } from '../stacks/use-stack.ts';
import { connectClient, openSession } from './remote.ts';

/** These numbers are of no account of this machine: none is needed. */
export const API = { uid: 61_234, gid: 61_235 };
export const WORKER = { uid: 61_237, gid: 61_238 };
export const numbers = ({ uid, gid }: typeof API) => `${uid}:${gid}`;

export const statusOf = (pid: number) => readFileSync(`/proc/${pid}/status`, 'utf8');
export const uidOf = (pid: number) => Number(/^Uid:\s+(\d+)/m.exec(statusOf(pid))?.[1]);

/** A stack that has stored something while all of it ran as root, and that root starts anew with these settings. */
export function useOtherAccounts(settings: Record<string, string>) {
  const { stack, sshd } = useRemoteStack({ start: startStack }, {});
  const client = () => connectClient(stack);
  /** A session, and the model and the table that were made as root. */
  const made = { sid: '', mid: '', table: '' };

  const pidsOf = (name: string) =>
    stack.pids().flatMap(entry => (entry.name === name ? [entry.pid] : []));
  const uidsOf = (name: string) => [...new Set(pidsOf(name).map(uidOf))];

  const objects = (): Stats[] =>
    readdirSync(join(stack.dataDir, 'objects/objects'), { recursive: true, withFileTypes: true })
      .filter(entry => entry.isFile())
      .map(entry => statSync(join(entry.parentPath, entry.name)));
  const rowsOf = async (table: string, query = '?sort=a') =>
    (await client().get<{ rows: unknown[] }>(`${table}/rows${query}`)).rows;

  async function restart(given: Record<string, string | undefined>): Promise<void> {
    await stack.down();
    Object.assign(stack.environment, { API_USER: 'root', WORKER_USER: 'root' }, given);
    await stack.up();
    made.sid = await openSession(client(), sshd);
  }

  beforeAll(async () => {
    const { mid } = await makeModel(client());
    const table = await makeTable(client(), { mid, aid: 'table', csv: 'a,b\n2,x\n1,y\n' });
    Object.assign(made, { mid, table });
    expect([uidsOf('windlass-api'), uidsOf('windlass-worker')]).toEqual([[0], [0]]);
    await restart(settings);
  });
  afterAll(() => client().delete(`/api/remotes/${made.sid}`));

  return { stack, sshd, client, made, pidsOf, uidsOf, objects, rowsOf, restart };
}
