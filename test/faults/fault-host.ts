import type { Client } from '../../servers/api-client.ts';
import { signalProcess } from '../../servers/processes.ts';
import { addHost, connectClient, isEnded, type Job, openSession } from '../harness/hosts/remote.ts';
import { startTestSshd, type TestSshd } from '../harness/hosts/sshd.ts';
import type { Random } from '../harness/random.ts';
import { startTcpProxy, type TcpProxy } from '../harness/servers/tcp-proxy.ts';
import { type Stack, startStack } from '../harness/stacks/stack.ts';
import { waitFor } from '../harness/wait-for.ts';

export type QueueKind = 'postgres' | 'redis';

/** One running stack that the faults of a suite share. */
export interface RunningStack {
  stack: Stack;
  client: Client;
}

/** A host of a test's own, so that what is left on it is that test's. */
export interface FaultHost {
  sshd: TestSshd;
  /** Between the workers and sshd. */
  proxy: TcpProxy;
  /** A session with an agent. */
  sid: string;
  /** One without, where it was asked for. */
  plain: string;
}

/** Few slots, so that of 20 commands some wait in the queue while the others run. */
const SETTINGS = { REMOTE_SLOTS: '8' };

export async function startFaultStack(queue: QueueKind): Promise<RunningStack> {
  const stack = await startStack({ redis: queue === 'redis', env: SETTINGS });
  return { stack, client: connectClient(stack) };
}

let made = 0;

/** Lends a host with an open session; afterwards it ends with all it runs. */
export async function withHost(
  { client }: RunningStack,
  use: (host: FaultHost) => Promise<void>,
  { plain = false } = {},
): Promise<void> {
  const sshd = await startTestSshd();
  const proxy = await startTcpProxy({ host: sshd.host, port: sshd.port });
  const sids: string[] = [];
  const open = async (options: { hostname: string; agent?: boolean }) => {
    const sid = await openSession(client, sshd, options);
    sids.push(sid);
    return sid;
  };
  try {
    const hostname = await addHost(client, sshd, { name: `faults-${++made}`, port: proxy.port });
    await use({
      sshd,
      proxy,
      sid: await open({ hostname }),
      plain: plain ? await open({ hostname, agent: false }) : '',
    });
  } finally {
    proxy.heal();
    await endSessions(client, sids).catch(() => {});
    await proxy.stop();
    await sshd.stop();
  }
}

/** What a failed test left running must not keep the next one's commands from their slots. */
async function endSessions(client: Client, sids: string[]): Promise<void> {
  for (const sid of sids) await client.fetch(`/api/remotes/${sid}`, { method: 'DELETE' });
  await waitFor(
    async () => {
      const { items } = await client.get<{ items: Job[] }>('/api/jobs?limit=100');
      return items.every(isEnded);
    },
    { what: "the sessions' jobs to end", timeoutMs: 20_000, intervalMs: 200 },
  );
}

export function findWorkers({ stack }: RunningStack): number[] {
  return pidsNamed(stack, 'windlass-worker');
}

export function pidsNamed(stack: Stack, name: string): number[] {
  return stack
    .pids()
    .filter(entry => entry.name === name)
    .map(entry => entry.pid);
}

/** Kills one of the workers, whichever; waits for one to kill where all are dead. */
export async function killSomeWorker(service: RunningStack, random: Random): Promise<void> {
  await waitFor(() => findWorkers(service).length > 0, { what: 'a worker to kill' });
  signalProcess(random.pick(findWorkers(service)), 'SIGKILL');
}
