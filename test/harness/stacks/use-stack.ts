import type postgres from 'postgres';
import { afterAll, beforeAll } from 'vitest';
import type { Client } from '../../../servers/api-client.ts';
import { openStackDatabase } from '../databases/database.ts';
import { addHost, connectClient } from '../hosts/remote.ts';
import { startTestSshd, type TestSshd } from '../hosts/sshd.ts';
import { startTcpProxy, type TcpProxy } from '../servers/tcp-proxy.ts';
import type { Form } from './forms.ts';
import type { SharedStackOptions } from './shared-stacks.ts';
import type { Stack } from './stack.ts';

type Starter = Pick<Form, 'start'>;

/** The settings for tests that ask for more than a user may. */
export const UNLIMITED: SharedStackOptions = {
  env: { LIMIT_REQUESTS: '0', LIMIT_FAILED_LOGINS: '0' },
};

/**
 * Starts something before the tests of this describe() and stops it after them, the last one first. It may be used in
 * later hooks and in tests; any earlier use throws.
 */
export function useStarted<T extends { stop(): Promise<void> }>(start: () => Promise<T>): T {
  let started: T | undefined;
  beforeAll(async () => {
    started = await start();
  });
  afterAll(() => started?.stop());
  return standInFor(() => started);
}

/** A stack of this form, and a client for its administrator. */
export function useStack(
  form: Starter,
  options?: SharedStackOptions,
): { stack: Stack; client: Client } {
  const stack = useStarted(() => form.start(options));
  let client: Client | undefined;
  beforeAll(() => {
    client = connectClient(stack);
  });
  return { stack, client: standInFor(() => client) };
}

export interface RemoteStackOptions extends SharedStackOptions {
  /** Lines of sshd_config. */
  sshdLines?: string[];
}

/** The stack's own database, of which nothing may be asked but in hooks and tests. */
export function useStackDatabase(stack: Stack): postgres.Sql {
  let database: postgres.Sql | undefined;
  beforeAll(() => {
    database = openStackDatabase(stack);
  });
  afterAll(() => database?.end());
  const query = (...given: Parameters<postgres.Sql>) => {
    if (!database) throw new Error('Only hooks and tests may ask the database.');
    return database(...given);
  };
  return query as postgres.Sql;
}

/** useStack(), and an sshd that it knows as the host named `host`. */
export function useRemoteStack(
  form: Starter,
  { sshdLines: lines, ...options }: RemoteStackOptions = {},
): { stack: Stack; client: Client; sshd: TestSshd } {
  const sshd = useStarted(() => startTestSshd({ lines }));
  const { stack, client } = useStack(form, options);
  beforeAll(async () => {
    await addHost(client, sshd);
  });
  return { stack, client, sshd };
}

/** useRemoteStack(), where the way to the host leads through a proxy. */
export function useProxiedStack(
  form: Starter,
  { sshdLines: lines, ...options }: RemoteStackOptions = {},
): { stack: Stack; client: Client; sshd: TestSshd; proxy: TcpProxy } {
  const sshd = useStarted(() => startTestSshd({ lines }));
  const proxy = useStarted(() => startTcpProxy({ host: sshd.host, port: sshd.port }));
  const { stack, client } = useStack(form, options);
  beforeAll(async () => {
    await addHost(client, sshd, { port: proxy.port });
  });
  return { stack, client, sshd, proxy };
}

/** Passes all that is read of it on to what there is then. */
function standInFor<T extends object>(find: () => T | undefined): T {
  return new Proxy({} as T, {
    get(_target, key) {
      const present = find();
      if (!present) throw new Error(`${String(key)}: only hooks and tests may ask for it.`);
      const value = Reflect.get(present, key, present);
      return typeof value === 'function' ? value.bind(present) : value;
    },
  });
}
