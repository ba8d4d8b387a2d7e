import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { listProcesses, readEnvironment } from '../../servers/processes.ts';
import { waitFor } from '../harness/wait-for.ts';
import type { FaultHost, RunningStack } from './fault-host.ts';

/** The runs that the host still keeps: an attempt that was given a command has a claim that names it. */
function listRuns({ sshd }: FaultHost): string[] {
  const runs = join(sshd.home, '.windlass/runs');
  return readdirSync(runs)
    .map(directory => readIfThere(join(runs, directory, 'claim')).trim())
    .filter(id => id !== '' && id !== '-');
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** Waits until all runs that ended have been removed from the host. */
export async function expectForgotten(host: FaultHost): Promise<void> {
  await waitFor(() => listRuns(host).length === 0, {
    what: 'every run to be removed from its host',
    timeoutMs: 90_000,
    intervalMs: 200,
  });
}

/** Ends the session; then nothing may be left of it on the host but the agent's file, and no process. */
export async function expectCleanHost({ client }: RunningStack, host: FaultHost): Promise<void> {
  await expectForgotten(host);
  await client.delete(`/api/remotes/${host.sid}`);
  const look = () => ({
    files: listFiles(host),
    processes: listHostProcesses(host).map(({ pid, command }) => `${pid} ${command}`),
  });
  await waitFor(
    () => {
      const { files, processes } = look();
      return files.length <= 1 && processes.length === 0;
    },
    { what: 'the host to be clean', timeoutMs: 30_000, intervalMs: 200 },
  ).catch(() => {});
  expect(look()).toEqual({ files: [expect.stringMatching(/^agent[-.\w]*$/)], processes: [] });
}

function listFiles({ sshd }: FaultHost): string[] {
  return readdirSync(join(sshd.home, '.windlass'), { recursive: true, withFileTypes: true })
    .filter(entry => !['runs', 'started', '.label', 'serve'].includes(entry.name))
    .map(entry =>
      join(entry.parentPath, entry.name).slice(sshd.home.length + '/.windlass/'.length),
    );
}

/** All that the account of the host runs. */
export const listHostProcesses = ({ sshd }: FaultHost) =>
  listProcesses().filter(({ pid }) => readEnvironment(pid).HOME === sshd.home);
