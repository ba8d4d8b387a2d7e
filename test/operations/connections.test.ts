import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { listConnections } from '../harness/databases/database-connections.ts';
import { launchAsync, openSession, waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeForms } from '../harness/stacks/forms.ts';
import type { Stack } from '../harness/stacks/stack.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const SLOTS = 16;
const MAX = 4;

/** The embedded Postgres is found by what it leaves in its folder. */
function databaseUrl({ environment, dataDir }: Stack): string {
  if (environment.DATABASE_URL) return environment.DATABASE_URL;
  const [port, password] = ['port', 'password'].map(name =>
    readFileSync(join(dataDir, `postgres.${name}`), 'utf8').trim(),
  );
  return `postgres://windlass:${password}@127.0.0.1:${port}/postgres`;
}

describeForms(missingPrograms('sshd'), 'connections', form => {
  const { stack, client, sshd } = useRemoteStack(form, {
    alone: 'counts the connections of its processes',
    workers: 2,
    env: { REMOTE_SLOTS: String(SLOTS) },
  });

  test(`a worker has at most ${MAX} soon after its last work`, async () => {
    const workers = stack.pids().filter(({ name }) => name.startsWith('windlass-worker'));
    expect(workers).toHaveLength(2);
    const sid = await openSession(client, sshd);
    const commands = Array.from({ length: 3 * SLOTS * workers.length }, (_, i) =>
      launchAsync(client, sid, `echo ${i}; sleep 0.3`),
    );
    for (const job of await Promise.all(commands)) await waitForEnd(client, job.id);
    const url = databaseUrl(stack);
    let last: string[][] = [];
    const isEnough = async () => {
      last = await Promise.all(workers.map(({ pid }) => listConnections(url, pid)));
      return last.every(({ length }) => length > 0 && length <= MAX);
    };
    const what = () => JSON.stringify(last);
    await waitFor(isEnough, { what: 'few connections', timeoutMs: 30_000 }).catch(cause => {
      throw new Error(`30 s later there are ${what()}.`, { cause });
    });
    // What they do every 5 s opens no others.
    for (let look = 0; look < 24; look++) {
      expect(await isEnough(), what()).toBe(true);
      await delay(250);
    }
  });
});
