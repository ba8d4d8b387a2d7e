import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import {
  type AddressInfo,
  createServer as createTcpServer,
  type Socket,
  type Server as TcpServer,
} from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { type PostOptions, postMessage } from './post-message.ts';

const patient = new AbortController().signal;
const servers: Server[] = [];
const tcpServers: TcpServer[] = [];
const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const server of tcpServers.splice(0)) server.close();
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

/** A receiver at this address, and the requests that came. */
async function receive(answer: RequestListener, address = '127.0.0.1', port = 0) {
  const asked: IncomingMessage[] = [];
  const server = createServer((req, res) => {
    asked.push(req);
    answer(req, res);
  }).listen(port, address);
  servers.push(server);
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, asked };
}

const post = (url: string, more: Partial<PostOptions> = {}) =>
  postMessage(url, {
    headers: { 'webhook-id': 'msg_1' },
    body: '{"é": 1}',
    isPrivateAllowed: true,
    signal: patient,
    ...more,
  });

test('sends the body and the headers, by the name of the URL', async () => {
  let body = '';
  const { port, asked } = await receive((req, res) => {
    req.setEncoding('utf8').on('data', chunk => (body += chunk));
    req.on('end', () => res.writeHead(204).end());
  });
  expect(await post(`http://localhost:${port}/hook?a=b`)).toBe(204);
  expect(body).toBe('{"é": 1}');
  expect(asked[0]).toMatchObject({ method: 'POST', url: '/hook?a=b' });
  expect(asked[0]?.headers).toMatchObject({
    host: `localhost:${port}`,
    'content-type': 'application/json',
    'webhook-id': 'msg_1',
  });
});

test('the address that was checked is the one that is connected to, whatever the name says next', async () => {
  const first = await receive((_req, res) => res.end());
  const other = await receive((_req, res) => res.end(), '127.0.0.2', first.port);
  let questions = 0;
  const lookup = async () => [questions++ === 0 ? '127.0.0.1' : '127.0.0.2'];
  expect(await post(`http://rebound.example:${first.port}/`, { lookup })).toBe(200);
  expect([questions, first.asked.length, other.asked]).toEqual([1, 1, []]);
});

test('where the first address takes no connection, the next one is tried', async () => {
  const { port, asked } = await receive((_req, res) => res.end(), '127.0.0.2');
  // Nobody listens at the first; the second is nobody's (RFC 5737).
  const lookup = async () => ['127.0.0.1', '192.0.2.1', '127.0.0.2'];
  expect(await post(`http://several.example:${port}/`, { lookup, timeoutMs: 6_000 })).toBe(200);
  expect(asked.map(({ headers }) => headers.host)).toEqual([`several.example:${port}`]);
});

test('a private address is sent nothing, by whatever name, and a name that turns to one neither', async () => {
  const { port, asked } = await receive((_req, res) => res.end());
  const isPrivateAllowed = false;
  for (const host of ['127.0.0.1', 'localhost', '2130706433', '0x7f.1', '[::ffff:127.0.0.1]'])
    await expect(post(`http://${host}:${port}/`, { isPrivateAllowed }), host).rejects.toThrow(
      /^Not allowed: .* loopback, link-local or private address/,
    );
  const lookup = async () => ['127.0.0.1'];
  await expect(post(`http://inner.example:${port}/`, { isPrivateAllowed, lookup })).rejects.toThrow(
    /^Not allowed: inner\.example/,
  );
  // TEST-NET-1 (RFC 5737), nobody's: it was checked, so nothing else is connected to.
  const answers = ['192.0.2.1', '127.0.0.1'];
  const turning = { lookup: async () => [answers.shift() ?? ''], timeoutMs: 300 };
  await expect(
    post(`http://turning.example:${port}/`, { isPrivateAllowed, ...turning }),
  ).rejects.toThrow(/^No answer came|could not be reached/);
  const several = { lookup: async () => ['192.0.2.1', '127.0.0.1'], timeoutMs: 300 };
  await expect(
    post(`http://several.example:${port}/`, { isPrivateAllowed, ...several }),
  ).rejects.toThrow(/^No answer came|could not be reached/);
  expect(asked).toEqual([]);
});

test('a redirect is an answer like any other', async () => {
  const target = await receive((_req, res) => res.end());
  const location = `http://127.0.0.1:${target.port}/`;
  const { port } = await receive((_req, res) => res.writeHead(307, { location }).end());
  expect(await post(`http://127.0.0.1:${port}/`)).toBe(307);
  expect(target.asked).toEqual([]);
});

test('neither silence nor an endless answer takes longer than an attempt', async () => {
  const silent = await receive(() => {});
  await expect(post(`http://127.0.0.1:${silent.port}/`, { timeoutMs: 200 })).rejects.toThrow(
    'No answer came within 0.2 s.',
  );
  let written = 0;
  const endless = await receive((_req, res) => {
    const write = () => {
      while (!res.destroyed && res.write(Buffer.alloc(65_536))) written += 65_536;
    };
    res.on('drain', write);
    write();
  });
  expect(await post(`http://127.0.0.1:${endless.port}/`)).toBe(200);
  // What the sockets' buffers take on this machine, and no more.
  expect(written).toBeLessThan(64 << 20);
});

/** A receiver that says this, in whatever protocol. */
async function receiveRaw(say: (socket: Socket) => void): Promise<string> {
  const server = createTcpServer(socket => {
    sockets.push(socket.on('error', () => {}));
    socket.once('data', () => say(socket));
  }).listen(0, '127.0.0.1');
  tcpServers.push(server);
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

test('a change of the protocol is an answer like any other', async () => {
  const url = await receiveRaw(socket =>
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\nConnection: Upgrade\r\n\r\n',
    ),
  );
  expect(await post(url)).toBe(101);
  await expect.poll(() => sockets.every(socket => socket.destroyed)).toBe(true);
});

test('interim answers without end are given up', async () => {
  const hints = 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(200);
  const url = await receiveRaw(socket => socket.write(hints));
  await expect(post(url)).rejects.toThrow('The receiver sent only interim answers.');
});

test('a connection that ends without an answer is told at once', async () => {
  const url = await receiveRaw(socket => socket.end());
  await expect(post(url)).rejects.toThrow(/could not be reached: ECONNRESET/);
});

test('what cannot be reached is told by its code', async () => {
  const { port } = await receive(() => {});
  servers[0]?.close();
  await expect(post(`http://127.0.0.1:${port}/`)).rejects.toThrow(/ECONNREFUSED/);
  await expect(post('http://unknown.example/', { lookup: async () => [] })).rejects.toThrow(
    'The name unknown.example could not be resolved.',
  );
});
