import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { openIdleApp } from '../interface/app.ts';
import type { Document } from '../interface/description.ts';

/** The description as the app serves it, with nothing behind it. */
export async function readDocument(): Promise<Document> {
  const idle = await openIdleApp();
  const server = createServer(idle.app).listen(0, '127.0.0.1');
  try {
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const answer = await fetch(`http://127.0.0.1:${port}/api/openapi.json`);
    return (await answer.json()) as Document;
  } finally {
    server.close();
    server.closeAllConnections();
    await idle.close();
  }
}
