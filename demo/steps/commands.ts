import { dim, expect } from '../console.ts';
import type { DemoContext } from '../context.ts';
import { killWorker } from '../kill-worker.ts';

interface Job {
  id: string;
  state: string;
  worker: string | null;
}

/** Registers the host with its pinned key and opens a session. */
export async function openSession({ client, host, out }: DemoContext): Promise<string> {
  await client.post('/api/hosts', {
    name: 'demo',
    address: host.host,
    port: host.port,
    keys: [host.hostKey],
    agent: true,
    private: true,
  });
  const credential = host.privateKey
    ? { privateKey: host.privateKey }
    : { password: host.password };
  const { sid } = await client.post<{ sid: string }>('/api/remotes', {
    hostname: 'demo',
    username: host.username,
    ...credential,
  });
  out.note(`session ${sid}`);
  return sid;
}

/** Runs a command of two seconds and prints its output events. */
export async function runCommand(demo: DemoContext, sid: string): Promise<void> {
  const command =
    'for i in 1 2 3 4 5; do echo "line $i of 5"; sleep 0.4; done; echo "to standard error" >&2; exit 3';
  demo.out.note(dim(`$ ${command}`));
  const job = await launch(demo, sid, command);
  let lines = 0;
  for await (const { event, data } of demo.client.events(job)) {
    if (event !== 'output') continue;
    for (const line of String(data.text).trimEnd().split('\n')) {
      lines++;
      demo.out.note(line);
    }
  }
  expect(lines === 6, `6 lines were expected, ${lines} came`);
  const { result } = await demo.client.get<{ result: { returncode: number } }>(`/api/jobs/${job}`);
  expect(result.returncode === 3, `exit status 3 was expected, it is ${result.returncode}`);
  demo.out.note('exit status 3, as it should be');
}

const LINES = 100;

/** Kills the worker in the middle of a counting command and checks that each line appears exactly once. */
export async function surviveKill(demo: DemoContext, sid: string): Promise<void> {
  const { out, client } = demo;
  const command = `i=1; while [ $i -le ${LINES} ]; do echo "count $i"; echo "$i" >> "$HOME/ledger"; i=$((i + 1)); sleep 0.1; done`;
  out.note(dim(`$ ${command}`));
  const job = await launch(demo, sid, command);
  const progress = out.progress('lines');
  let killed = false;
  let text = '';
  for await (const { event, data } of client.events(job)) {
    if (event !== 'output') continue;
    text += String(data.text);
    const lines = text.split('\n').length - 1;
    progress(lines / LINES);
    if (!killed && lines >= LINES / 3) killed = await killWorker(demo, job);
  }
  const expected = Array.from({ length: LINES }, (_, n) => `count ${n + 1}\n`).join('');
  expect(killed, 'no worker was killed');
  expect(text === expected, 'the output is not what the command printed');
  const answer = await client.post<{ output: string }>('/api/remotes/launch', {
    sid,
    command: 'cat "$HOME/ledger"',
  });
  const ledger = Array.from({ length: LINES }, (_, n) => `${n + 1}\n`).join('');
  expect(answer.output === ledger, "the host's own ledger shows that it did not run exactly once");
  const { state, worker } = await client.get<Job>(`/api/jobs/${job}`);
  expect(state === 'succeeded', `the job is ${state}`);
  out.note(
    `all ${LINES} lines are there, once; the host's ledger agrees${worker ? ` (${worker})` : ''}`,
  );
}

async function launch({ client }: DemoContext, sid: string, command: string): Promise<string> {
  const { id } = await client.post<Job>(
    '/api/remotes/launch',
    { sid, command },
    { Prefer: 'respond-async' },
  );
  return id;
}
