import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { readConfig } from '../shared/settings/config.ts';
import { makeTempDir } from '../test/harness/files/temp-dir.ts';
import { withDatabase } from './find-database.ts';

const directory = makeTempDir('find-database');
afterAll(() => directory.remove());

test('who listens on the port of a service that does not run is not told its password', async () => {
  let connections = 0;
  const server = createServer(socket => {
    connections++;
    // AuthenticationCleartextPassword.
    socket
      .on('error', () => {})
      .on('data', () => socket.write(Buffer.from('R\0\0\0\x08\0\0\0\x03')));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const { port } = server.address() as AddressInfo;
    writeFileSync(join(directory.path, 'postgres.port'), `${port}\n`);
    writeFileSync(join(directory.path, 'postgres.password'), 'the password\n');
    const config = readConfig({ DATA_DIR: directory.path });
    const stopped = AbortSignal.abort(new Error('stopped'));
    await expect(withDatabase(config, stopped, async () => 'done')).rejects.toThrow();
    expect(connections).toBe(0);
  } finally {
    server.close();
  }
});
