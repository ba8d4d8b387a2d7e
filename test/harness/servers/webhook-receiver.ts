import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';

/** A message whose signature was verified by the library of Standard Webhooks. */
export interface Received {
  id: string;
  type: string;
  timestamp: string;
  data: Record<string, unknown> & { id: string };
}

export interface WebhookReceiver {
  url: string;
  /** What came with a good signature, in order; one that came twice is there twice. */
  readonly received: Received[];
  /** What came otherwise. */
  readonly refused: unknown[];
  /** Known once the webhook is made. */
  secret: string;
  stop(): Promise<void>;
}

/** Somebody's own server. `answer` may answer what was verified; else that is 204. */
export async function startReceiver(
  answer: (message: Received, res: ServerResponse) => void = (_message, res) => {
    res.writeHead(204).end();
  },
): Promise<WebhookReceiver> {
  const received: Received[] = [];
  const refused: unknown[] = [];
  const receiver = { url: '', received, refused, secret: '', stop };
  const server = createServer(async (req, res) => {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of req) chunks.push(chunk as Buffer);
    } catch {
      // The sender died: nothing came.
      return;
    }
    try {
      const body = Buffer.concat(chunks).toString();
      const headers = req.headers as Record<string, string>;
      const told = new Webhook(receiver.secret).verify(body, headers) as Omit<Received, 'id'>;
      const message = { ...told, id: headers['webhook-id'] ?? '' };
      received.push(message);
      answer(message, res);
    } catch (error) {
      refused.push(error);
      res.writeHead(400).end();
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  return receiver;

  async function stop(): Promise<void> {
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  }
}
