import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentClient } from '../../../workers/host-agent/client.ts';
import { waitFor } from '../wait-for.ts';
import { type AgentHarness, collect, type Outcome, processesOf } from './agent-harness.ts';
import type { LocalExec } from './local-exec.ts';

export const NEEDS_MOUNT = 'needs root that may mount a tmpfs';

/** Over the account's home; option is tmpfs's. False where that is not allowed. */
export function mountSmallDisk(host: LocalExec, option = 'size=8m'): boolean {
  try {
    const { home } = host.account;
    execFileSync('mount', ['-t', 'tmpfs', '-o', option, 'tmpfs', home], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

export async function unmountSmallDisk(harness: AgentHarness, host: LocalExec): Promise<void> {
  await harness.close();
  await waitFor(() => processesOf(host).length === 0, { what: 'the end of every process' });
  // A process that exits loses its environment, by which it is found, before its files.
  await waitFor(() => spawnSync('umount', [host.account.home]).status === 0, { what: 'an umount' });
}

/** Until the next attempt stands prepared: until it is used or dies nothing more is written. */
export async function awaitPrepared(host: LocalExec): Promise<void> {
  const runs = join(host.account.home, '.windlass/runs');
  const isReady = (name: string) => existsSync(join(runs, name, 'ready'));
  const count = () => readdirSync(runs).filter(isReady).length;
  await waitFor(() => count() >= 2, { what: 'the next attempts to stand ready' });
}

/** A run after which no file can be made any more, and which ends with a line of its own: it exits with 7. */
export async function useUpInodes(
  host: LocalExec,
  client: AgentClient,
  end = 'exit 7',
): Promise<Outcome> {
  const script = [
    'while ! test -e go; do sleep 0.02; done',
    'i=0; while { true >"used$i"; } 2>/dev/null; do i=$((i + 1)); done',
    end,
  ].join('\n');
  const events = client.run({ id: 'greedy', token: 'one', script });
  const outcome = collect({ client, id: 'greedy', events });
  await awaitPrepared(host);
  // Its streams need a file each: without one it would end as on a full disk.
  const runs = join(host.account.home, '.windlass/runs');
  const spools = () =>
    readdirSync(runs, { recursive: true, encoding: 'utf8' }).filter(file => /\/[oe]\.1/.test(file));
  await waitFor(() => spools().length === 2, { what: 'the files of both streams' });
  writeFileSync(join(host.account.home, 'go'), '');
  return outcome;
}
