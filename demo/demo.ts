import type { Client } from '../servers/api-client.ts';
import type { SshHost } from '../servers/ssh-host.ts';
import type { Console } from './console.ts';

/** What every step of the demonstration works with. */
export interface Demo {
  out: Console;
  host: SshHost;
  client: Client;
  /** Of the demonstration's own, removed at its end. */
  directory: string;
}
