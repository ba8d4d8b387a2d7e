import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** `up` is from the client to the server, `down` the way back. */
export type Direction = 'up' | 'down';

export interface TcpProxy {
  host: '127.0.0.1';
  port: number;
  /** Bytes passed on so far. */
  readonly bytes: Readonly<Record<Direction, number>>;
  /** Connections open now, ever taken, and ever refused. */
  readonly connections: { readonly open: number; readonly total: number; readonly refused: number };
  /** Resets every connection, as a firewall does that forgets; new ones are taken. */
  cut(): void;
  /** Resets all connections once `bytes` more bytes have passed in a direction; that chunk is cut there. */
  cutAfter(direction: Direction, bytes: number): void;
  /** Becomes a network that drops every packet: nothing passes, nothing is closed, new connections are silent. */
  blackhole(...directions: Direction[]): void;
  /**
   * As a firewall that forgets in silence, or a host whose address another one took: open connections stay silent for
   * ever, new ones pass. `heal` does not end it.
   */
  forget(): void;
  /** Becomes a slow link that all connections share: `bytesPerSecond` pass in a direction. */
  throttle(direction: Direction, bytesPerSecond: number): void;
  /** Ends `blackhole` and `refuse`: what was held back passes on, as TCP sends it again. */
  heal(): void;
  /** Cuts every connection and resets each new one at once, as where nothing runs. */
  refuse(): void;
  /** New connections lead to another port, as where somebody took the server's place. */
  leadTo(port: number): void;
  stop(): Promise<void>;
}

interface Link {
  client: Socket;
  server: Socket;
  isForgotten: boolean;
}

/** A TCP proxy on a free port of 127.0.0.1, to be put between two of our own processes. */
export async function startTcpProxy(given: { host: string; port: number }): Promise<TcpProxy> {
  const target = { ...given };
  const links = new Set<Link>();
  const forgotten = new Set<Link>();
  const bytes = { up: 0, down: 0 };
  const held = { up: false, down: false };
  const budget = { up: Number.POSITIVE_INFINITY, down: Number.POSITIVE_INFINITY };
  const rate = { up: Number.POSITIVE_INFINITY, down: Number.POSITIVE_INFINITY };
  /** performance.now() when the slow link will have passed all that it took. */
  const passedAt = { up: 0, down: 0 };
  let total = 0;
  let refused = 0;
  let refusing = false;

  const listener = createServer({ allowHalfOpen: true, noDelay: true }, client => {
    if (refusing) {
      refused++;
      client.on('error', () => {});
      client.resetAndDestroy();
      return;
    }
    total++;
    const server = connect({ ...target, allowHalfOpen: true, noDelay: true });
    const link = { client, server, isForgotten: false };
    links.add(link);
    watchEnd(link, 'up');
    watchEnd(link, 'down');
    forward(link, 'up');
    forward(link, 'down');
  });

  function forward(link: Link, direction: Direction): void {
    const { from, to } = sidesOf(link, direction);
    if (held[direction]) from.pause();
    from.on('data', (chunk: Buffer) => {
      if (rate[direction] === Number.POSITIVE_INFINITY) return pass(chunk);
      const now = performance.now();
      const due = Math.max(now, passedAt[direction]) + (chunk.length / rate[direction]) * 1_000;
      passedAt[direction] = due;
      from.pause();
      setTimeout(() => {
        if (!held[direction] && !link.isForgotten) from.resume();
        if (to.writable) pass(chunk);
      }, due - now);
    });
    function pass(chunk: Buffer): void {
      const passed = chunk.subarray(0, budget[direction]);
      budget[direction] -= passed.length;
      bytes[direction] += passed.length;
      const hasRoom = to.write(passed);
      if (budget[direction] === 0) {
        budget[direction] = Number.POSITIVE_INFINITY;
        to.write('', () => proxy.cut());
        from.pause();
      } else if (!hasRoom) {
        from.pause();
        to.once('drain', () => {
          if (!held[direction] && !link.isForgotten) from.resume();
        });
      }
    }
    from.once('end', () => {
      if (to.writable) to.end();
    });
  }

  /** Passes the end of one side on to the other, unless a black hole swallows it. */
  function watchEnd(link: Link, direction: Direction): void {
    const { from, to } = sidesOf(link, direction);
    let failed = false;
    from.on('error', () => {
      failed = true;
    });
    from.once('close', () => {
      if (held[direction] || link.isForgotten) return;
      links.delete(link);
      if (failed) to.resetAndDestroy();
      else to.destroySoon();
    });
  }

  function reset(link: Link): void {
    links.delete(link);
    forgotten.delete(link);
    link.client.resetAndDestroy();
    link.server.resetAndDestroy();
  }

  await new Promise<void>((settle, reject) => {
    listener.once('error', reject);
    listener.listen(0, '127.0.0.1', settle);
  });

  const proxy: TcpProxy = {
    host: '127.0.0.1',
    port: (listener.address() as AddressInfo).port,
    bytes,
    connections: {
      get open() {
        return links.size;
      },
      get total() {
        return total;
      },
      get refused() {
        return refused;
      },
    },
    cut() {
      for (const link of [...links]) reset(link);
    },
    cutAfter(direction, count) {
      budget[direction] = count;
    },
    blackhole(...directions) {
      for (const direction of directions.length > 0 ? directions : (['up', 'down'] as const)) {
        held[direction] = true;
        for (const { client, server } of links) (direction === 'up' ? client : server).pause();
      }
    },
    forget() {
      for (const link of links) {
        link.isForgotten = true;
        link.client.pause();
        link.server.pause();
        forgotten.add(link);
      }
      links.clear();
    },
    throttle(direction, bytesPerSecond) {
      rate[direction] = bytesPerSecond;
    },
    heal() {
      refusing = false;
      held.up = false;
      held.down = false;
      for (const link of [...links]) {
        if (link.client.destroyed || link.server.destroyed) reset(link);
        link.client.resume();
        link.server.resume();
      }
    },
    leadTo(port) {
      target.port = port;
    },
    refuse() {
      refusing = true;
      proxy.cut();
    },
    async stop() {
      const closed = new Promise(settle => listener.close(settle));
      proxy.cut();
      for (const link of [...forgotten]) reset(link);
      await closed;
    },
  };
  return proxy;
}

function sidesOf({ client, server }: Link, direction: Direction): { from: Socket; to: Socket } {
  return direction === 'up' ? { from: client, to: server } : { from: server, to: client };
}
