import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach } from 'vitest';
import { findProgram } from '../../../scripts/programs.ts';
import { type OpenAgentOptions, openAgent } from '../../../workers/host-agent/bootstrap.ts';
import type { AgentClient } from '../../../workers/host-agent/client.ts';
import type { RunEvent } from '../../../workers/host-agent/protocol/run-event.ts';
import type { ListedRun } from '../../../workers/host-agent/protocol/run-lists.ts';
import { LocalExec } from './local-exec.ts';

const ENV = {
  PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin',
  USER: 'tester',
  LOGNAME: 'tester',
};

/** The shells that read the agent. */
export const FAMILY = ['dash', 'bash', 'busybox', 'ksh', 'zsh'] as const;
/** Where this machine has them. */
export const SHELLS = FAMILY.map(name => findProgram(name)).filter(path => path !== undefined);

export interface Outcome {
  stdout: Buffer;
  stderr: Buffer;
  /** The types of the events that are not output, in order. */
  types: string[];
  last: RunEvent | undefined;
}

/** Accounts on this machine and agents that serve them, for this directory's tests; all gone after clean. */
export class AgentHarness {
  readonly #root = mkdtempSync(join(tmpdir(), 'windlass-agent-'));
  readonly #clients: AgentClient[] = [];
  #lastName = 0;

  newName(): string {
    return `r-${++this.#lastName}-${process.pid}`;
  }

  /** The shell as this account's; busybox's has to be called by its own name. Its home's name needs quoting. */
  makeHost(shell: string, env: Record<string, string> = {}): LocalExec {
    const home = mkdtempSync(join(this.#root, "it's a home-"));
    if (!shell.endsWith('/busybox')) return new LocalExec({ home, shell, env: { ...ENV, ...env } });
    const folder = mkdtempSync(join(this.#root, 'bin-'));
    symlinkSync(shell, join(folder, 'ash'));
    return new LocalExec({ home, shell: join(folder, 'ash'), env: { ...ENV, ...env } });
  }

  /** A folder of links, by name: a PATH without all other programs. */
  makePath(links: Record<string, string>): string {
    const folder = mkdtempSync(join(this.#root, 'path-'));
    for (const [name, target] of Object.entries(links)) symlinkSync(target, join(folder, name));
    return folder;
  }

  async connect(host: LocalExec, options: Partial<OpenAgentOptions> = {}): Promise<AgentClient> {
    const client = await openAgent(host, {
      timeoutMs: 20_000,
      spoolLimitBytes: 2 ** 30,
      ...options,
    });
    this.#clients.push(client);
    return client;
  }

  /** Runs a command to its end, acknowledging all. */
  async run(client: AgentClient, command: string): Promise<Outcome & { id: string }> {
    const id = this.newName();
    const events = client.run({ id, token: this.newName(), command });
    return { id, ...(await collect({ client, id, events })) };
  }

  async close(): Promise<void> {
    for (const client of this.#clients.splice(0)) {
      client.close();
      await client.closed;
    }
  }

  clean(): void {
    rmSync(this.#root, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  }
}

/** One whose agents end with each test of the file, and whose accounts end with the last. */
export function useAgentHarness(): AgentHarness {
  const harness = new AgentHarness();
  afterEach(() => harness.close());
  afterAll(() => harness.clean());
  return harness;
}

/** Where the agent has its files. */
export const baseOf = (host: LocalExec): string => join(host.account.home, '.windlass');

/** Reads a run to its end and acknowledges what was read; throws where offsets do not join. */
export async function collect(read: {
  client: AgentClient;
  id: string;
  events: AsyncIterable<RunEvent>;
  from?: { stdout: number; stderr: number };
}): Promise<Outcome> {
  const { client, id, events, from = { stdout: 0, stderr: 0 } } = read;
  const parts: Record<'stdout' | 'stderr', Buffer[]> = { stdout: [], stderr: [] };
  const at = { ...from };
  const types: string[] = [];
  let last: RunEvent | undefined;
  for await (const event of events) {
    last = event;
    if (event.type !== 'output') {
      types.push(event.type);
      continue;
    }
    if (event.offset !== at[event.stream]) throw new Error(`${event.offset} is not the next byte.`);
    parts[event.stream].push(event.bytes);
    at[event.stream] += event.bytes.length;
    client.ack(id, at.stdout, at.stderr);
  }
  return { stdout: Buffer.concat(parts.stdout), stderr: Buffer.concat(parts.stderr), types, last };
}

export async function follow(
  client: AgentClient,
  id: string,
  from = { stdout: 0, stderr: 0 },
): Promise<Outcome> {
  return collect({ client, id, from, events: client.follow({ id, ...from }) });
}

/** All runs that the host keeps. */
export async function listRuns(client: AgentClient): Promise<ListedRun[]> {
  const runs: ListedRun[] = [];
  for await (const some of client.list()) runs.push(...some);
  return runs;
}

/** `PID COMMAND LINE` of the processes of this account. */
export function processesOf(host: LocalExec): string[] {
  const found: string[] = [];
  for (const pid of readdirSync('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    const environment = readProc(pid, 'environ').split('\0');
    const line = readProc(pid, 'cmdline').replaceAll('\0', ' ');
    if (line && environment.includes(`HOME=${host.account.home}`)) found.push(`${pid} ${line}`);
  }
  return found;
}

/** Empty for a process that has ended. */
export function readProc(pid: string, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8');
  } catch {
    return '';
  }
}

/** What lies under ~/.windlass beside its own three folders, and what names the one of the fences. */
export function filesOf(host: LocalExec): string[] {
  const files = readdirSync(baseOf(host), {
    recursive: true,
    encoding: 'utf8',
  });
  const lasting = ['runs', 'serve', 'started', 'started/.label'];
  return files.filter(file => !lasting.includes(file)).sort();
}

/** The directory of the run's attempt, from its fence. */
export function runDirectory(host: LocalExec, id: string): string {
  const base = baseOf(host);
  const [, name = ''] = readFileSync(join(base, 'started', id), 'utf8')
    .trim()
    .split(' ');
  return join(base, 'runs', name);
}
