import { once } from 'node:events';
import { type AddressInfo, connect as connectTcp, createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import ssh2 from 'ssh2';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { makeKeyPair } from '../../servers/key-pair.ts';
import type { HostRow } from '../../shared/database/schema.ts';
import { abortable } from '../../shared/process/abort.ts';
import type { JumpCredential } from '../../shared/secrets/secrets.ts';
import { destinationDigest } from '../../shared/ssh/destination.ts';
import type { Hops } from '../../shared/ssh/hops.ts';
import { connectHere } from '../../test/harness/hosts/connect-here.ts';
import { startTestSshd, type TestSshd } from '../../test/harness/hosts/sshd.ts';
import { describeUnless, missingPrograms } from '../../test/harness/skip.ts';
import { waitFor } from '../../test/harness/wait-for.ts';
import type { Round } from './authentication.ts';
import { connect, type Target } from './connect.ts';
import { connectWithin } from './connect-within.ts';
import type { Connection } from './log-in.ts';
import { RemoteSession } from './remote-session.ts';

const patient = new AbortController().signal;
const stranger = makeKeyPair();
const ended: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of ended.splice(0).reverse()) await end();
});

describeUnless(missingPrograms('sshd'), 'jump hosts', () => {
  const machines = {} as Record<'outer' | 'inner' | 'node' | 'closed', TestSshd>;
  beforeAll(async () => {
    for (const name of ['outer', 'inner', 'node'] as const)
      machines[name] = await startTestSshd({ lines: ['LogLevel VERBOSE'] });
    machines.closed = await startTestSshd({ lines: ['AllowTcpForwarding no'] });
  });
  afterAll(() => Promise.all(Object.values(machines).map(sshd => sshd.stop())));

  type Name = keyof typeof machines;
  type Login = Omit<Target, 'destination'>;
  /** A worker may not connect to a private address itself; behind a jump host it is another machine's. */
  const entry = (name: Name, index: number, keys = [machines[name].hostKey]) =>
    ({
      name,
      address: 'localhost',
      port: machines[name].port,
      keys,
      private: index === 0,
    }) as HostRow;
  const loginOf = (name: Name): JumpCredential => {
    const { username, privateKey } = machines[name];
    return { username, privateKey };
  };
  /** Every hop with a credential of its own. */
  const through = (names: Name[], changes: Partial<Record<Name, string[]>> = {}): Login => {
    const hops = names.map((name, i) => entry(name, i, changes[name])) as Hops;
    const logins = names.map(loginOf);
    const { username, ...credential } = logins.reduce((jump, login) => ({ ...login, jump }));
    return { hops, username, credential };
  };
  const connections = (name: Name) => machines[name].log().match(/^Connection from/gm)?.length ?? 0;
  const open = async (target: Login) =>
    new RemoteSession(await connectHere(target, patient), {
      spoolLimitBytes: 2 ** 30,
      shell: undefined,
    });
  const run = async (session: RemoteSession, command: string) => {
    const channel = await session.exec(command);
    channel.stdin.end();
    return text(channel.stdout);
  };

  test.each([[['outer', 'node']], [['outer', 'inner', 'node']]] as [Name[]][])(
    'a login through %j is one at each with its own key, and ends as one',
    async names => {
      const session = await open(through(names));
      const home = machines.node.home;
      expect(await run(session, 'echo "$HOME"')).toBe(`${home}\n`);
      expect(await run(session, 'head -c 3000000 /dev/zero | tr "\\0" x')).toHaveLength(3_000_000);
      session.close();
      await session.closed;
      for (const name of names) {
        const lost = await open(through(names));
        const at = performance.now();
        machines[name].disconnect();
        await lost.closed;
        // No time of silence passes first.
        expect(performance.now() - at).toBeLessThan(8_000);
      }
      const again = await open(through(names));
      const before = machines.outer.log().length;
      again.close();
      await again.closed;
      await waitFor(async () => /disconnect|closed/i.test(machines.outer.log().slice(before)), {
        what: 'the end at the jump host',
      });
    },
  );

  test.each(['outer', 'inner', 'node'] as Name[])(
    'another key of %s is refused and named, and no byte goes further',
    async name => {
      const names: Name[] = ['outer', 'inner', 'node'];
      const before = names.map(connections);
      const target = through(names, { [name]: [stranger.public] });
      await expect(connectHere(target, patient)).rejects.toMatchObject({
        code: 'host_key_changed',
        message: expect.stringContaining(`Host key changed: ${name} shows SHA256:`),
      });
      const at = names.indexOf(name);
      await waitFor(async () => connections(name) > (before[at] ?? 0), { what: 'the connection' });
      const met = names.map((one, i) => connections(one) > (before[i] ?? 0));
      expect(met).toEqual(names.map((_, i) => i <= at));
    },
  );

  test('what was sealed for other hops is sent nowhere', async () => {
    const target = through(['outer', 'node']);
    const before = connections('outer');
    const others = [
      through(['node']).hops,
      through(['inner', 'node']).hops,
      through(['outer', 'inner', 'node']).hops,
      through(['outer', 'node'], { outer: [stranger.public] }).hops,
      through(['outer', 'node'], { node: [stranger.public] }).hops,
    ];
    for (const hops of others)
      await expect(
        connect({ ...target, destination: destinationDigest(hops) }, patient),
      ).rejects.toMatchObject({
        code: 'host_changed',
      });
    expect(connections('outer')).toBe(before);
  });

  test('a login that is refused, and a host that lets nobody on, are named', async () => {
    const { hops, username, credential } = through(['outer', 'node']);
    const { privateKey } = machines.inner;
    const refused = { ...credential, jump: { username, privateKey } };
    await expect(
      connectHere({ hops, username, credential: refused }, patient),
    ).rejects.toMatchObject({
      code: 'remote_authentication_failed',
      message: expect.stringMatching(/^Remote authentication failed: at the jump host outer: /),
    });
    const wrong = { privateKey, jump: credential.jump };
    await expect(connectHere({ hops, username, credential: wrong }, patient)).rejects.toMatchObject(
      {
        code: 'remote_authentication_failed',
        message: expect.stringMatching(/^Remote authentication failed: at node: /),
      },
    );
    await expect(connectHere(through(['closed', 'node']), patient)).rejects.toMatchObject({
      code: 'remote_connection_failed',
      message: expect.stringMatching(/at node: .* closed lets this account connect to no further/),
      hint: expect.stringContaining('AllowTcpForwarding'),
    });
  });

  test('a host that is unreachable behind its jump host is named, and so is a jump host that is unreachable', async () => {
    await machines.inner.down();
    try {
      await expect(connectHere(through(['outer', 'inner']), patient)).rejects.toMatchObject({
        code: 'remote_connection_failed',
        message: expect.stringMatching(/at inner: localhost:\d+: the jump host outer could not/),
      });
      await expect(connectHere(through(['inner', 'node']), patient)).rejects.toMatchObject({
        code: 'remote_connection_failed',
        message: expect.stringMatching(/at the jump host inner: .*ECONNREFUSED/),
      });
    } finally {
      await machines.inner.up();
    }
  });

  test('each hop is attempted under its own limit', async () => {
    const attempts: string[] = [];
    const target = through(['outer', 'inner', 'node']);
    const { client } = await connectHere(
      {
        ...target,
        attempt: (hops, run) => {
          attempts.push(hops.map(({ name }) => name).join(' > '));
          return run();
        },
      },
      patient,
    );
    client.destroy();
    expect(attempts).toEqual(['outer', 'outer > inner', 'outer > inner > node']);
  });
});

/** A jump host of this process, that does with the connections that it is asked for what the test says. */
async function serveJump(
  onTcpip: (accept: () => ssh2.ServerChannel) => void,
  onLogin = (login: ssh2.AuthContext) => login.accept(),
) {
  const key = makeKeyPair();
  const server = new ssh2.Server({ hostKeys: [key.private] }, client => {
    client.on('error', () => {});
    client.on('authentication', onLogin);
    client.on('tcpip', accept => onTcpip(accept));
    ended.push(() => client.end());
  });
  ended.push(() => server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { name: 'gate', address: '127.0.0.1', port, keys: [key.public], private: true } as HostRow;
}

/** SSH_MSG_IGNORE (RFC 4253, 6 and 11.2), with 4 bytes of padding and a string of 32,754. */
const IGNORE = Buffer.alloc(32_768, 'x');
IGNORE.writeUInt32BE(32_764, 0);
IGNORE.writeUInt8(4, 4);
IGNORE.writeUInt8(2, 5);
IGNORE.writeUInt32BE(32_754, 6);

const throughTo = async (gate: HostRow, limits: { connectMs: number; loginMs: number }) => {
  const node = { name: 'node', address: 'node', port: 22, keys: [stranger.public] } as HostRow;
  const target = { hops: [gate, node] as Hops, username: 'me', credential: { password: 'x' } };
  return connectHere({ ...target, limits }, patient);
};

test('what a host sends before the login is limited behind a jump host, too, and so is its silence', async () => {
  const floods = await serveJump(accept => {
    const channel = accept().on('error', () => {});
    const flood = () => {
      while (channel.writable && channel.write(IGNORE));
      channel.once('drain', flood);
    };
    channel.write('SSH-2.0-endless\r\n');
    flood();
  });
  const silent = await serveJump(accept => accept());
  const closed = await serveJump(accept => accept().end());
  const patience = { connectMs: 10_000, loginMs: 10_000 };
  await expect(throughTo(floods, patience)).rejects.toMatchObject({
    code: 'remote_connection_failed',
    message: expect.stringMatching(/at node: .*more than 1 MB before the login/),
  });
  await expect(throughTo(silent, { ...patience, loginMs: 300 })).rejects.toMatchObject({
    code: 'remote_connection_failed',
    message: expect.stringMatching(/at node: .*did not answer/),
  });
  await expect(throughTo(closed, patience)).rejects.toMatchObject({
    code: 'remote_connection_failed',
    message: expect.stringMatching(/at node: /),
  });
});

test('a jump host that does not say whether it connects is given up, and an abort ends the attempt', async () => {
  let asked = () => {};
  const isAsked = new Promise<void>(resolve => {
    asked = resolve;
  });
  const gate = await serveJump(() => asked());
  const leaving = new AbortController();
  const limits = { connectMs: 300, loginMs: 10_000 };
  await expect(throughTo(gate, limits)).rejects.toMatchObject({
    code: 'remote_connection_failed',
    message: expect.stringContaining('the jump host gate made no connection within 0.3 s'),
  });
  const node = { name: 'node', address: 'node', port: 22, keys: [stranger.public] } as HostRow;
  const target = { hops: [gate, node] as Hops, username: 'me', credential: { password: 'x' } };
  const connecting = connectHere(target, leaving.signal);
  await isAsked;
  leaving.abort(new Error('left'));
  await expect(connecting).rejects.toThrow('left');
});

test('where the time for all hops is over, the one that it ended at is named', async () => {
  const limits = { connectMs: 10_000, loginMs: 10_000 };
  const node = { name: 'node', address: 'node', port: 22, keys: [stranger.public] } as HostRow;
  const through = (gate: HostRow) => {
    const hops: Hops = [gate, node];
    return { hops, username: 'me', limits, destination: destinationDigest(hops) };
  };
  const late = (gate: HostRow) =>
    connectWithin(300, { ...through(gate), credential: { password: 'x' } });
  const mute = createServer(() => {});
  ended.push(() => mute.close());
  await once(mute.listen(0, '127.0.0.1'), 'listening');
  const { port } = mute.address() as AddressInfo;
  const silent = { ...(await serveJump(() => {})), port };
  await expect(late(silent)).rejects.toMatchObject({
    code: 'remote_connection_failed',
    message: expect.stringContaining(
      `at the jump host gate: 127.0.0.1:${port}: no connection within 0.3 s.`,
    ),
  });
  await expect(late(await serveJump(() => {}))).rejects.toMatchObject({
    code: 'remote_connection_failed',
    message: expect.stringContaining('at node: node:22: no connection within 0.3 s.'),
  });
  // So is the one whose circuit breaker lets nobody try.
  const target = { ...through(await serveJump(() => {})), credential: { password: 'x' } };
  const hold = (until: HostRow[], run: () => Promise<Connection>, signal: AbortSignal) =>
    until.length === 1 ? run() : abortable(new Promise<never>(() => {}), signal);
  await expect(connectWithin(300, { ...target, attempt: hold })).rejects.toMatchObject({
    message: expect.stringContaining('at node: node:22: no connection within 0.3 s.'),
  });
});

test('each of the hops may ask its user, who is told which one asks', async () => {
  const askCode = (login: ssh2.AuthContext) => {
    if (login.method !== 'keyboard-interactive') return login.reject(['keyboard-interactive']);
    login.prompt([{ prompt: 'Code: ', echo: false }], ([code]) =>
      code === 'right' ? login.accept() : login.reject(),
    );
  };
  const node = { ...(await serveJump(() => {}, askCode)), name: 'node' };
  const gate = await serveJump(accept => {
    const channel = accept();
    const socket = connectTcp(node.port, '127.0.0.1');
    channel.pipe(socket).pipe(channel);
  }, askCode);
  const asked: string[] = [];
  const ask = async ({ instruction, prompts }: Round) => {
    asked.push(instruction);
    return prompts.map(() => 'right');
  };
  const target = { hops: [gate, node] as Hops, username: 'me', credential: {} };
  (await connectHere({ ...target, ask }, patient)).client.end();
  expect(asked).toEqual(['gate asks:', 'node asks:']);
  (await connectHere({ ...target, hops: [node], ask }, patient)).client.end();
  expect(asked).toEqual(['gate asks:', 'node asks:', '']);
});
