import type { Client } from '../servers/api-client.ts';
import type { SshHost } from '../servers/ssh-host.ts';
import type { Console } from './console.ts';

/** The arguments of every step. */
export interface DemoContext {
  out: Console;
  host: SshHost;
  client: Client;
  /** A temporary directory. */
  directory: string;
}
