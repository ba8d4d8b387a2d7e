import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { isDatabaseDown, openDatabase } from './connect.ts';
import { withScram } from './host-urls.ts';
import { clientOf, finderOf } from './primary.ts';

const message = (type: string, ...rest: number[]) =>
  Buffer.from([type.charCodeAt(0), 0, 0, 0, rest.length + 4, ...rest]);
const authentication = (type: number, text = '') =>
  message('R', 0, 0, 0, type, ...Buffer.from(text));
const READY = message('Z', 'I'.charCodeAt(0));
const SASL = authentication(10, 'SCRAM-SHA-256\0\0');

/** What somebody says who has taken the port: to the first message, and to the second. */
const WAYS: Record<string, Buffer[]> = {
  'asks for the password in clear': [authentication(3)],
  'asks for its MD5': [authentication(5, 'salt')],
  'asks in two pieces': [authentication(3).subarray(0, 4), authentication(3).subarray(4)],
  'asks after a notice': [Buffer.concat([message('N', 0), authentication(3)])],
  'asks for nothing': [Buffer.concat([authentication(0), READY])],
  'begins as it should, and then asks for the password in clear': [SASL, authentication(3)],
  'begins as it should, and then is content': [SASL, Buffer.concat([authentication(0), READY])],
};

for (const [what, answers] of Object.entries(WAYS))
  test(`a server that ${what} is told no password, and not believed`, async () => {
    let heard = '';
    const serve = (socket: Socket) => {
      const left = [...answers];
      socket.on('error', () => {});
      socket.on('data', chunk => {
        heard += chunk.toString('latin1');
        const piece = left.shift();
        if (piece) socket.write(piece);
        // Apart, so that they come in two pieces.
        if (piece?.length === 4) setTimeout(() => socket.write(left.shift() ?? ''), 50);
      });
    };
    const server = createServer({ noDelay: true }, serve).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const url = withScram(`postgres://me:hunter2@127.0.0.1:${port}/name`);
    const database = openDatabase(url, { max: 1 });
    try {
      const error = await database.sql`select 'told'`.catch((error: unknown) => error);
      expect(isDatabaseDown(error)).toBe(true);
      const client = new (clientOf(url))({ connectionString: finderOf(url).url });
      client.on('error', () => {});
      await expect(client.connect()).rejects.toThrow();
    } finally {
      await database.close();
      server.close();
    }
    expect(heard).toContain('user\0me\0');
    expect(heard).not.toMatch(/hunter2|md5|told/);
  });
