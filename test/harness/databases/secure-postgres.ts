import { chownSync, copyFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import type { CertificateFiles } from '../files/make-authority.ts';
import { waitFor } from '../wait-for.ts';
import type { TestPostgres } from './postgres-server.ts';

/** Has the server offer TLS with this certificate, or, without one, no TLS. `authority` signs the certificates of clients. */
export async function securePostgres(
  server: TestPostgres,
  files?: CertificateFiles,
  authority?: string,
): Promise<void> {
  const client = postgres(server.url('postgres'), { max: 1, onnotice: () => {} });
  try {
    const [row] = await client<{ directory: string }[]>`
      select current_setting('data_directory') as directory`;
    const directory = row?.directory ?? '';
    const { uid, gid } = statSync(directory);
    const given = { key: files?.key, crt: files?.certificate, ca: authority };
    for (const [name, from] of Object.entries(given)) {
      if (from === undefined) continue;
      const to = join(directory, `server.${name}`);
      copyFileSync(from, to);
      chownSync(to, uid, gid);
    }
    await client.unsafe(`alter system set ssl = ${files ? 'on' : 'off'}`);
    await client.unsafe(`alter system set ssl_ca_file = '${authority ? 'server.ca' : ''}'`);
    // Told apart by when it was: a new certificate changes no setting.
    const loadedAt = async () => (await client`select pg_conf_load_time()::text as at`)[0]?.at;
    const before = await loadedAt();
    await client`select pg_reload_conf()`;
    await waitFor(async () => (await loadedAt()) !== before, { what: 'the server to reload' });
  } finally {
    await client.end({ timeout: 2 });
  }
}
