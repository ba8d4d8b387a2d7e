import { Client } from '../../../servers/api-client.ts';
import { pidOfWorker } from '../../../shared/jobs/worker-id.ts';
import type { Stack } from '../stacks/stack.ts';
import { waitFor } from '../wait-for.ts';
import type { TestSshd } from './sshd.ts';

export interface Job {
  id: string;
  kind: string;
  state: 'queued' | 'running' | 'succeeded' | 'failed' | 'cancelled';
  progress: number | null;
  message: string | null;
  worker: string | null;
  result: Record<string, unknown> | null;
  error: { code: string; detail: string; hint?: string } | null;
}

export const connectClient = (stack: Stack) =>
  new Client(stack.url, stack.username, stack.password);

/** Adds the host, with its key pinned, under this name. */
export async function addHost(
  client: Client,
  sshd: Pick<TestSshd, 'host' | 'port' | 'hostKey'>,
  { name = 'host', address = sshd.host as string, agent = true, port = sshd.port } = {},
): Promise<string> {
  await client.post('/api/hosts', {
    name,
    address,
    port,
    keys: [sshd.hostKey],
    agent,
    private: true,
  });
  return name;
}

interface SessionOptions {
  hostname?: string;
  agent?: boolean;
  env?: Record<string, string>;
  startup?: string;
}

export async function openSession(
  client: Client,
  sshd: TestSshd,
  { hostname = 'host', agent = true, ...more }: SessionOptions = {},
): Promise<string> {
  const { sid } = await client.post<{ sid: string }>('/api/remotes', {
    hostname,
    username: sshd.username,
    privateKey: sshd.privateKey,
    agent,
    ...more,
  });
  return sid;
}

/** Starts a command without waiting for it; its job. */
export async function launchAsync(
  client: Client,
  sid: string,
  command: string,
  options: { timeout?: number; stdin?: string } = {},
): Promise<Job> {
  const body = { sid, command, ...options };
  return client.post<Job>('/api/remotes/launch', body, { Prefer: 'respond-async' });
}

export const isEnded = (job: Job) => !['queued', 'running'].includes(job.state);

/** What `GET /jobs/(id)/history` tells. */
export async function historyOf(
  client: Client,
  id: string,
): Promise<{ event: string; time: string; worker?: string }[]> {
  return (await client.get<{ items: [] }>(`/api/jobs/${id}/history`)).items;
}

/** The error of one that does not end tells how far it came, and what became of it so far. */
export async function waitForEnd(client: Client, id: string, timeoutMs = 60_000): Promise<Job> {
  let job: Job | undefined;
  const hasEnded = async () => {
    job = await client.get<Job>(`/api/jobs/${id}`);
    return isEnded(job) ? job : undefined;
  };
  try {
    return await waitFor(hasEnded, { what: `job ${id} to end`, timeoutMs });
  } catch (cause) {
    const history = await historyOf(client, id).catch(() => []);
    throw new Error(`${(cause as Error).message} ${JSON.stringify({ job, history })}`, { cause });
  }
}

export async function readOutput(
  client: Client,
  id: string,
  stream: 'stdout' | 'stderr' = 'stdout',
  offset = 0,
): Promise<Buffer> {
  const response = await client.fetch(`/api/jobs/${id}/output?stream=${stream}&offset=${offset}`);
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  return Buffer.from(await response.arrayBuffer());
}

/** The process that holds the job now. */
export async function holderOf(client: Client, id: string): Promise<number> {
  return waitFor(
    async () => {
      const { worker, state } = await client.get<Job>(`/api/jobs/${id}`);
      return worker && state === 'running' ? pidOfWorker(worker) : undefined;
    },
    { what: `a worker to hold job ${id}` },
  );
}
