import type { Client } from '../../../servers/api-client.ts';
import { findFreePort } from '../../../servers/free-port.ts';
import { readEnvironment } from '../../../servers/processes.ts';
import { isProcessAlive } from '../files/temp-dir.ts';
import { addHost, connectClient, openSession } from '../hosts/remote.ts';
import { startTestSshd, type TestSshd } from '../hosts/sshd.ts';
import { startNginx, type TestNginx } from '../servers/nginx.ts';
import { waitFor } from '../wait-for.ts';
import { type Stack, type StackProcess, startStack } from './stack.ts';

/** A fleet behind nginx, set up as docs/fleet.md says, with a session on a host. */
export interface ProxiedFleet {
  stack: Stack;
  nginx: TestNginx;
  sshd: TestSshd;
  /** Through nginx. */
  client: Client;
  sid: string;
  /** The ports of the two APIs behind it. */
  apis: [number, number];
  stop(): Promise<void>;
}

export async function startProxiedFleet(settings = {}): Promise<ProxiedFleet> {
  const port = await findFreePort();
  const env = { PUBLIC_URL: `http://127.0.0.1:${port}`, TRUST_PROXY: '1', ...settings };
  const stack = await startStack({ form: 'fleet', env });
  const first = Number(stack.environment.PORT);
  const apis: [number, number] = [first, first + 1];
  let nginx: TestNginx | undefined;
  let sshd: TestSshd | undefined;
  const stop = async () => {
    await stack.stop();
    await nginx?.stop();
    await sshd?.stop();
  };
  try {
    nginx = await startNginx(port, apis);
    sshd = await startTestSshd();
    const client = connectClient(stack);
    await addHost(client, sshd);
    const sid = await openSession(client, sshd);
    return { stack, nginx, sshd, client, sid, apis, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The API process that listens on this port; undefined while there is none. */
function findApi({ stack }: ProxiedFleet, port: number): StackProcess | undefined {
  return stack
    .pids()
    .find(({ name, pid }) => name === 'windlass-api' && readEnvironment(pid).PORT === String(port));
}

/**
 * Signals the API on this port and waits until all its threads are gone: a killed process looks ended while they still
 * hold its port, and a POST that gets there is answered 502, as it is not sent again.
 */
export async function endApi(
  fleet: ProxiedFleet,
  { port, signal }: { port: number; signal: NodeJS.Signals },
): Promise<void> {
  const pid = findApi(fleet, port)?.pid;
  if (pid === undefined) throw new Error(`There is no API on port ${port}.`);
  process.kill(pid, signal);
  await waitFor(() => !isProcessAlive(pid), {
    what: `the API on port ${port} to end`,
    timeoutMs: 20_000,
  });
}

export async function waitForApi(port: number): Promise<void> {
  await waitFor(async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok, {
    what: `the API on port ${port} to be ready`,
    timeoutMs: 30_000,
  });
}
