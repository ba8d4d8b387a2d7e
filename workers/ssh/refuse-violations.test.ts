import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import ssh2, { type ServerChannel } from 'ssh2';
import { expect, onTestFinished, test } from 'vitest';
import { makeKeyPair } from '../../servers/key-pair.ts';
import { requirePackage } from '../../shared/process/require-package.ts';
import { openConnection } from './open-connection.ts';

/** The protocol of ssh2's server, which sends what it is told to, whatever the RFC says. */
interface Protocol {
  channelEOF(id: number): void;
  channelData(id: number, data: Buffer): void;
  channelExtData(id: number, data: Buffer, type: number): void;
  channelOpenConfirm(recipient: number, sender: number, window: number, packetSize: number): void;
  /** Asks for a reply. */
  ping(): void;
}

interface Violation {
  /** Called right after the connection is made. */
  connected?(protocol: Protocol): void;
  /** Called when the client asks for a command; `id` is the client's number of the channel. */
  asked?(protocol: Protocol, channel: ServerChannel, id: number, socket: Socket): void;
}

/** A client that is connected to a host with this violation, and the client's errors. */
async function connectTo({ connected, asked }: Violation) {
  const server = new ssh2.Server({ hostKeys: [makeKeyPair().private] }, host => {
    const { _protocol: protocol, _sock: socket } = host as unknown as {
      _protocol: Protocol;
      _sock: Socket;
    };
    host.on('error', () => {});
    host.on('authentication', context => context.accept());
    connected?.(protocol);
    host.on('session', accept => {
      accept().on('exec', acceptCommand => {
        const channel = acceptCommand();
        const { outgoing } = channel as unknown as { outgoing: { id: number } };
        asked?.(protocol, channel, outgoing.id, socket);
      });
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const client = new ssh2.Client();
  onTestFinished(() => void client.destroy());
  const errors: string[] = [];
  client.on('error', error => errors.push(error.message));
  const closed = new Promise<void>(resolve => client.once('close', () => resolve()));
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const options = { username: 'me', password: 'x', hostVerifier: () => true };
  await openConnection(client, socket, { options, signal: new AbortController().signal });
  return { client, errors, closed };
}

const run = (client: ssh2.Client) =>
  new Promise<ssh2.ClientChannel>((resolve, reject) =>
    client.exec('true', (error, channel) => (error ? reject(error) : resolve(channel))),
  );

test('what a host sends after the end of a stream is dropped', async () => {
  const { client, errors } = await connectTo({
    asked: (protocol, channel, id) => {
      protocol.channelEOF(id);
      protocol.channelExtData(id, Buffer.from('x'), 1);
      protocol.channelData(id, Buffer.from('x'));
      channel.exit(3);
      channel.close();
    },
  });
  const code = await new Promise(resolve =>
    client.exec('true', (_error, channel) => {
      channel.resume().once('exit', resolve);
      channel.stderr.resume();
    }),
  );
  expect([code, errors]).toEqual([3, []]);
});

test('a host that takes packets of no bytes is left', async () => {
  const { client, errors, closed } = await connectTo({
    connected: protocol => {
      const confirm = protocol.channelOpenConfirm.bind(protocol);
      protocol.channelOpenConfirm = (recipient, sender, window) =>
        confirm(recipient, sender, window, 0);
    },
  });
  run(client).catch(() => {});
  await closed;
  expect(errors[0]).toContain('it takes packets of 0 bytes');
});

test('a host that sends more than the window of a channel is left', async () => {
  const { client, errors, closed } = await connectTo({
    asked: (protocol, _channel, id) => {
      for (let i = 0; i < 200; i++) protocol.channelData(id, Buffer.alloc(32_000));
    },
  });
  // Nobody reads its output.
  await run(client);
  await closed;
  expect(errors[0]).toContain('it sends more than the window of a channel');
});

test.each(['stdout', 'stderr'])(
  'a host that sends many tiny pieces of %s is left',
  async stream => {
    const { client, errors, closed } = await connectTo({
      asked: (protocol, _channel, id) => {
        for (let i = 0; i < 135_000; i++)
          if (stream === 'stdout') protocol.channelData(id, Buffer.from('x'));
          else protocol.channelExtData(id, Buffer.from('x'), 1);
      },
    });
    // Nobody reads its output.
    await run(client);
    await closed;
    expect(errors[0]).toContain('it sends too many small pieces');
  },
);

test('a host that asks for replies without end and reads none is left', async () => {
  const { client, errors, closed } = await connectTo({
    asked: (protocol, _channel, _id, socket) => {
      socket.pause();
      // The buffers of both kernels fill first.
      const ask = () => {
        for (let i = 0; i < 5_000; i++) protocol.ping();
        if (socket.destroyed) return;
        if (socket.writableNeedDrain) socket.once('drain', ask);
        else setImmediate(ask);
      };
      ask();
    },
  });
  await run(client);
  await closed;
  expect(errors[0]).toContain('it does not read the replies');
});

test('keys that a host tells of after the login are not looked at', () => {
  const receivers = requirePackage<((protocol: object, payload: Buffer) => void)[]>(
    'ssh2/lib/protocol/handlers.js',
  );
  const seen: string[] = [];
  const protocol = {
    _handlers: { GLOBAL_REQUEST: (_: object, name: string) => seen.push(name) },
  };
  for (const name of ['hostkeys-00@openssh.com', 'keepalive@openssh.com']) {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(name.length);
    receivers[80]?.(protocol, Buffer.concat([Buffer.from([80]), length, Buffer.from(`${name}\0`)]));
  }
  expect(seen).toEqual(['keepalive@openssh.com']);
});
