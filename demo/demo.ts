import type { Client } from './client.ts';
import type { Console } from './console.ts';
import type { SshHost } from './ssh-host.ts';

/** What every step of the demonstration works with. */
export interface Demo {
  out: Console;
  host: SshHost;
  client: Client;
  /** Of the demonstration's own, removed at its end. */
  directory: string;
}
