/** A server that takes files: `peer.js plain|tus DIRECTORY`. Tells its parent its port. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { FileStore } from '@tus/file-store';
import { Server as TusServer } from '@tus/server';

export type PeerName = 'plain' | 'tus';

const SERVERS = {
  /** The simplest that keeps what it confirms: hashes, writes, syncs. */
  plain: directory => {
    let made = 0;
    return createServer(async (request, response) => {
      const hash = createHash('sha256');
      const file = createWriteStream(join(directory, String(made++)), { flush: true });
      await pipeline(
        request,
        async function* (body) {
          for await (const bytes of body) {
            hash.update(bytes as Buffer);
            yield bytes;
          }
        },
        file,
      );
      response.end(hash.digest('base64'));
    });
  },
  /** Neither hashes nor syncs. */
  tus: directory => {
    const tus = new TusServer({ path: '/files', datastore: new FileStore({ directory }) });
    return createServer((request, response) => void tus.handle(request, response));
  },
} satisfies Record<PeerName, (directory: string) => Server>;

const [name = '', directory = ''] = process.argv.slice(2);
const server = SERVERS[name as PeerName](directory);
server.listen(0, '127.0.0.1');
await once(server, 'listening');
process.send?.((server.address() as AddressInfo).port);
process.on('disconnect', () => process.exit(0));
