import { join } from 'node:path';
import type { Client } from '../servers/api-client.ts';
import { type SshHost, startSshHost } from '../servers/ssh-host.ts';
import { type ComparisonResult, compare } from './compare.ts';
import { OpenSsh } from './open-ssh.ts';
import { addHost, openSession } from './session.ts';

/** Commands for each measured rate. */
const COMMANDS = 96;
const AT_ONCE = [1, 16];
const SHELLS = { dash: 0.5, bash: 0.6 };

/** Compares how many commands a second one session runs, one after the other and 16 at a time, with ssh over ControlMaster. */
export async function compareRates(client: Client, directory: string): Promise<ComparisonResult[]> {
  const results: ComparisonResult[] = [];
  for (const [shell, target] of Object.entries(SHELLS)) {
    const host = await startHost(shell, join(directory, shell));
    try {
      await addHost(client, shell, host);
      const sid = await openSession(client, shell, host);
      const ssh = new OpenSsh(host, directory);
      await ssh.openControl();
      const launch = () => client.post('/api/remotes/launch', { sid, command: 'true' });
      for (const atOnce of AT_ONCE)
        results.push(
          await compare({
            name: `commands a second in one session, ${atOnce} at a time, against ssh with ControlMaster (${shell})`,
            ours: () => rate(atOnce, launch),
            baseline: () => rate(atOnce, () => ssh.runOverControl('true')),
            unit: 'commands/s',
            target,
          }),
        );
      await ssh.closeControl();
    } finally {
      await host.stop();
    }
  }
  return results;
}

/** The account of the current user with another shell, and room for 16 commands of one connection. */
async function startHost(shell: string, directory: string): Promise<SshHost> {
  const home = join(directory, 'home');
  const lines = [`SetEnv "HOME=${home}" "SHELL=/bin/${shell}"`, 'MaxSessions 64'];
  const host = await startSshHost({ directory, log: () => {}, lines });
  if (host.kind !== 'sshd') throw new Error('There is no sshd on this machine.');
  return host;
}

async function rate(atOnce: number, run: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  let left = COMMANDS;
  const work = async () => {
    while (left-- > 0) await run();
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return (COMMANDS / (performance.now() - began)) * 1_000;
}
