import type { Client } from '../servers/api-client.ts';
import type { SshHost } from '../servers/ssh-host.ts';
import type { Startup } from '../shared/ssh/startup-files.ts';

/** Registers a local host under this name. */
export async function addHost(client: Client, name: string, host: SshHost): Promise<void> {
  await client.post('/api/hosts', {
    name,
    address: host.host,
    port: host.port,
    keys: [host.hostKey],
    agent: true,
    private: true,
  });
}

/** Opens a session. Returns its id. */
export async function openSession(
  client: Client,
  hostname: string,
  { username, privateKey }: SshHost,
  { agent = true, startup }: { agent?: boolean; startup?: Startup } = {},
): Promise<string> {
  const login = { hostname, username, privateKey, agent, startup };
  return (await client.post<{ sid: string }>('/api/remotes', login)).sid;
}
