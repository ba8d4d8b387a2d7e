import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  beginUpload,
  digestField,
  makeModel,
  partPath,
  putPart,
  readUpload,
} from '../harness/clients/uploads.ts';
import { type Job, readOutput, waitForEnd } from '../harness/hosts/remote.ts';
import { describeUnless, missingPrograms } from '../harness/skip.ts';
import { missingFleet } from '../harness/stacks/fleet-servers.ts';
import {
  endApi,
  type ProxiedFleet,
  startProxiedFleet,
  waitForApi,
} from '../harness/stacks/proxied-fleet.ts';
import { WORKERS_APART } from '../harness/stacks/stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const KINDS = ['remote', 'video', 'parse', 'upkeep'].map(kind => `windlass-worker-${kind}`);
/** What nginx answers where it must not send a request again: the API it had sent it to became unreachable. */
const BAD_GATEWAY = 502;
/** Two clients that poll without a pause would take most of the processor. */
const POLL_MS = 20;

/** Clients that go on until they are told to stop. */
interface Load {
  /** Answers that no client should get. */
  failures: string[];
  /** Requests that were sent again after a 502. */
  repeated: number;
  launched: number;
  polled: number;
  stored: number;
  /** Ends the clients, and holds what they did against what is there. */
  finish(): Promise<void>;
}

describeUnless(missingPrograms('sshd', 'nginx') ?? missingFleet(), 'a rolling restart', () => {
  let fleet: ProxiedFleet;
  beforeAll(async () => {
    // How often its clients ask depends on the machine: no limit may end what they test.
    fleet = await startProxiedFleet({ ...WORKERS_APART, LIMIT_REQUESTS: '0' });
  });
  afterAll(() => fleet?.stop());

  test('of all workers under load: no request fails, no job is lost or doubled', {
    timeout: 300_000,
  }, async () => {
    const load = await startLoad(fleet, 'workers');
    for (const name of KINDS) {
      for (const pid of pidsOf(name)) {
        const before = load.launched;
        process.kill(pid, 'SIGTERM');
        await waitFor(() => pidsOf(name).length === 2 && !pidsOf(name).includes(pid), {
          what: `${name} to be back`,
          timeoutMs: 45_000,
        });
        await waitForWorkers(8);
        await waitFor(() => load.launched > before, {
          what: 'a launch to be answered',
          timeoutMs: 60_000,
        });
      }
    }
    await load.finish();
    expect(load.failures).toEqual([]);
    expect(load.repeated).toBe(0);
  });

  test('of both APIs under load: what may be sent again is served, held launches are answered 202', {
    timeout: 300_000,
  }, async () => {
    const load = await startLoad(fleet, 'apis');
    for (const port of fleet.apis) {
      const [held, other] = await Promise.all([holdLaunch(port), holdLaunch(port)]);
      const polled = load.polled;
      await endApi(fleet, { port, signal: 'SIGTERM' });
      for (const { answer } of [held, other]) expect((await answer).status).toBe(202);
      writeFileSync(join(fleet.sshd.home, `go-${port}`), '');
      await waitForApi(port);
      await waitFor(() => load.polled > polled, {
        what: 'polls to be answered',
        timeoutMs: 60_000,
      });
      for (const { id } of [held, other])
        expect(await waitForEnd(fleet.client, id)).toMatchObject({ state: 'succeeded' });
    }
    await load.finish();
    expect(load.failures).toEqual([]);
  });

  const pidsOf = (name: string) =>
    fleet.stack
      .pids()
      .filter(entry => entry.name === name)
      .map(({ pid }) => pid);

  async function waitForWorkers(count: number): Promise<void> {
    await waitFor(
      async () => {
        const ready = await fetch(`${fleet.nginx.url}/readyz`);
        return ((await ready.json()) as { workers: number }).workers === count;
      },
      { what: `${count} workers to be alive`, timeoutMs: 30_000 },
    );
  }

  /** A launch that this very API holds, of a command that has begun. */
  async function holdLaunch(port: number): Promise<{ id: string; answer: Promise<Response> }> {
    const mark = `held-${port}-${Math.random().toString(36).slice(2)}`;
    const authorization = `Basic ${btoa(`${fleet.stack.username}:${fleet.stack.password}`)}`;
    const answer = fetch(`http://127.0.0.1:${port}/api/remotes/launch`, {
      method: 'POST',
      headers: { authorization, 'Content-Type': 'application/json' },
      body: JSON.stringify({
        sid: fleet.sid,
        command: `echo ${mark}; while [ ! -e "$HOME/go-${port}" ]; do sleep 0.1; done`,
      }),
    });
    const id = await waitFor(
      async () => {
        const { items } = await fleet.client.get<{ items: Job[] }>('/api/jobs?limit=50');
        for (const job of items) {
          if (job.kind !== 'command' || job.state !== 'running') continue;
          if ((await readOutput(fleet.client, job.id)).toString().includes(mark)) return job.id;
        }
        return undefined;
      },
      { what: 'the held launch to begin', timeoutMs: 60_000, intervalMs: 100 },
    );
    return { id, answer };
  }
});

/** Clients behind nginx that launch commands, send parts and poll. */
async function startLoad(fleet: ProxiedFleet, name: string): Promise<Load> {
  const { client, sid, sshd } = fleet;
  const ledger = join(sshd.home, `ledger-${name}`);
  const { mid } = await makeModel(client);
  const uid = await beginUpload(client, mid, ['a0']);
  const over = new AbortController();
  const load: Load = { failures: [], repeated: 0, launched: 0, polled: 0, stored: 0, finish };
  let marks = 0;

  /** Sends as a client does: after a 502 the same again, under the same Idempotency-Key. */
  async function send(what: string, request: () => Promise<Response>): Promise<Response> {
    for (;;) {
      const response = await request();
      if (response.status !== BAD_GATEWAY) return response;
      await response.arrayBuffer();
      load.repeated++;
      if (load.repeated > 20) throw new Error(`${what}: 502 again and again`);
    }
  }

  async function launch(): Promise<void> {
    const mark = `mark-${marks++}`;
    const command = `echo ${mark} >> "$HOME/ledger-${name}"; echo ${mark}`;
    const response = await send(`launch ${mark}`, () =>
      client.fetch('/api/remotes/launch', {
        method: 'POST',
        headers: { 'Idempotency-Key': `${name}-${mark}` },
        body: JSON.stringify({ sid, command }),
      }),
    );
    const body = (await response.json()) as { output?: string; id?: string };
    if (response.status === 202 && body.id) {
      const job = await waitForEnd(client, body.id);
      const output = (await readOutput(client, body.id)).toString();
      if (job.state !== 'succeeded' || output !== `${mark}\n`)
        load.failures.push(`${mark}: ${JSON.stringify(job)} ${output}`);
    } else if (response.status !== 200 || body.output !== `${mark}\n`) {
      load.failures.push(`${mark}: ${response.status} ${JSON.stringify(body)}`);
    }
    load.launched++;
  }

  /** A GET is repeated by nginx itself: none may fail. */
  async function poll(): Promise<void> {
    const response = await client.fetch('/api/jobs?limit=5');
    const text = await response.text();
    if (response.status !== 200) load.failures.push(`GET: ${response.status} ${text}`);
    load.polled++;
    await delay(POLL_MS);
  }

  async function store(): Promise<void> {
    const part = load.stored;
    const bytes = Buffer.alloc(1 << 20, part);
    const digest = { 'Content-Digest': digestField(bytes) };
    const response = await send(`part ${part}`, () =>
      putPart(client, partPath(uid, 0, part), bytes, digest),
    );
    const text = await response.text();
    if (response.status !== 200) load.failures.push(`part ${part}: ${response.status} ${text}`);
    load.stored++;
  }

  const repeat = async (work: () => Promise<void>) => {
    while (!over.signal.aborted) {
      await work().catch((error: unknown) => {
        load.failures.push(String(error instanceof Error ? (error.cause ?? error) : error));
        over.abort();
      });
    }
  };
  const clients = [launch, launch, launch, poll, poll, store].map(repeat);

  async function finish(): Promise<void> {
    over.abort();
    await Promise.all(clients);
    const ran = readFileSync(ledger, 'utf8').trim().split('\n').sort();
    const wanted = Array.from({ length: marks }, (_unused, n) => `mark-${n}`).sort();
    expect(ran).toEqual(wanted);
    const { parts } = await readUpload(client, uid);
    expect(parts.map(({ size }) => size)).toEqual(Array(load.stored).fill(1 << 20));
    expect(load.stored).toBeGreaterThan(0);
  }
  return load;
}
