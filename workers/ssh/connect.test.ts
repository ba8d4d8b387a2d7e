import { type ChildProcess, spawn } from 'node:child_process';
import { getEventListeners, once } from 'node:events';
import { type AddressInfo, connect as connectTcp, createServer, type Socket } from 'node:net';
import ssh2 from 'ssh2';
import { afterEach, expect, test } from 'vitest';
import { makeKeyPair } from '../../servers/key-pair.ts';
import type { HostRow } from '../../shared/database/schema.ts';
import { CURRENT_ALGORITHMS } from '../../shared/ssh/algorithms.ts';
import { destinationDigest } from '../../shared/ssh/destination.ts';
import type { Hops } from '../../shared/ssh/hops.ts';
import { connectHere } from '../../test/harness/hosts/connect-here.ts';
import { waitFor } from '../../test/harness/wait-for.ts';
import type { Round } from './authentication.ts';
import { CircuitBreakers } from './circuit-breaker.ts';
import { connect } from './connect.ts';
import { dial } from './dial.ts';
import { LoginAttempts } from './login-attempts.ts';
import { RemoteSession } from './remote-session.ts';
import { scanHostKeys } from './scan-host-keys.ts';
import { mayHaveBeenSent } from './ssh-errors.ts';

const LIMITS = { connectMs: 10_000, loginMs: 300 };
const ended: (() => unknown)[] = [];
const patient = new AbortController().signal;
const hostKey = makeKeyPair();

afterEach(async () => {
  for (const end of ended.splice(0).reverse()) await end();
});

const hostAt = (port: number) =>
  ({ name: 'host', address: '127.0.0.1', port, keys: [hostKey.public], private: true }) as HostRow;

const logIn = (port: number, credential: { password: string }, loginMs = 10_000) =>
  connectHere(
    { hops: [hostAt(port)], username: 'me', credential, limits: { ...LIMITS, loginMs } },
    patient,
  );

/** A server that takes connections and does with them what the test says. */
async function listen(onSocket: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer(socket => {
    sockets.add(socket.on('error', () => {}));
    onSocket(socket);
  });
  ended.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** An SSH server of this process; its connections go to `onClient`. */
async function serveSsh(
  onClient: (client: ssh2.Connection) => void,
  options: Partial<ssh2.ServerConfig> = {},
): Promise<number> {
  const server = new ssh2.Server({ hostKeys: [hostKey.private], ...options }, client => {
    ended.push(() => client.end());
    onClient(client.on('error', () => {}));
  });
  ended.push(() => server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** What is used here of ssh2's inner parts. */
interface Protocol {
  _packetRW: {
    write: { allocStart: number; alloc(bytes: number): Buffer; finalize(packet: Buffer): Buffer };
  };
  _cipher: { encrypt(packet: Buffer): void };
}

/** RFC 4252, 5.4; ssh2's server says its banner once, and before the login. */
function say(host: ssh2.Connection | undefined, words: string): void {
  const text = Buffer.from(words);
  const { _packetRW, _cipher } = (host as unknown as { _protocol: Protocol })._protocol;
  const packet = _packetRW.write.alloc(9 + text.length);
  const start = _packetRW.write.allocStart;
  packet[start] = 53;
  packet.writeUInt32BE(text.length, start + 1);
  text.copy(packet, start + 5);
  packet.writeUInt32BE(0, start + 5 + text.length);
  _cipher.encrypt(_packetRW.write.finalize(packet));
}

const letIn = (client: ssh2.Connection) => client.on('authentication', login => login.accept());

test('a host that takes connections and says nothing is an error, and so is one silent at the login', async () => {
  const silent = await listen(() => {});
  const mute = await serveSsh(client => client.on('authentication', () => {}));
  for (const port of [silent, mute]) {
    await expect(logIn(port, { password: 'x' }, 300)).rejects.toMatchObject({
      code: 'remote_connection_failed',
      message: expect.stringContaining('did not answer'),
    });
  }
});

test('what a host says after the login is not kept, however much it is', async () => {
  const said = 'x'.repeat(30_000);
  let host: ssh2.Connection | undefined;
  const port = await serveSsh(client => {
    host = client;
    letIn(client).on('request', accept => accept?.());
  });
  const { client } = await logIn(port, { password: 'x' });
  ended.push(() => client.destroy());
  let heard = 0;
  client.on('banner', text => {
    heard += text.length;
  });
  const before = process.memoryUsage().heapUsed;
  for (let n = 0; n < 6_000; n++) {
    say(host, said);
    if (n % 100 === 99) await waitFor(() => heard === (n + 1) * said.length, { what: 'its words' });
  }
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(100 << 20);
});

test.each([
  { words: 'Monitored system.', next: 'hangs up', code: 'remote_connection_failed' },
  ...[
    'Your account has expired.',
    'Your account has been locked; please see the help desk.',
    'The account is locked due to 5 failed logins.',
    'Remote logins are not allowed for this account.',
    'Your account is disabled.',
    'You are required to change your password immediately (administrator enforced).',
    'WARNING: Your password has expired.',
  ].map(words => ({ words, next: 'hangs up', code: 'account_unusable' })),
  ...[
    'Policy: an account is locked after 5 failed attempts.',
    'WARNING: your password is expired in 14 days',
    'Your password will expire in 14 days.',
    'You are required to change your password every 90 days.',
  ].map(words => ({ words, next: 'hangs up', code: 'remote_connection_failed' })),
  { words: 'Your account has expired.', next: 'is silent', code: 'remote_connection_failed' },
])('a host that says "$words" of a login and $next is $code', async ({ words, next, code }) => {
  const port = await serveSsh(client =>
    client.on('authentication', login => {
      if (login.method === 'none') return login.reject(['password']);
      say(client, words);
      if (next === 'hangs up') client.end();
    }),
  );
  const loginMs = next === 'hangs up' ? 10_000 : 300;
  await expect(logIn(port, { password: 'x' }, loginMs)).rejects.toMatchObject({
    code,
    message: expect.stringContaining(`The host says: ${words}`),
  });
});

test.each([
  { next: 'hangs up', loginMs: 10_000 },
  // The words must come before its end on a busy machine, too.
  { next: 'is silent', loginMs: 1_500 },
])('a host that says something of an account and $next keeps no other account out', async one => {
  const words = 'Access denied by pam_slurm_adopt: you have no active jobs on this node';
  const port = await serveSsh(client =>
    client.on('authentication', login => {
      if (login.method === 'none') return login.reject(['password']);
      say(client, words);
      if (one.next === 'hangs up') client.end();
    }),
  );
  const breakers = new CircuitBreakers(4);
  const hops: Hops = [hostAt(port)];
  const target = { hops, username: 'me', credential: { password: 'x' } };
  const attempt = new LoginAttempts(breakers, undefined).run;
  const limits = { ...LIMITS, loginMs: one.loginMs };
  for (let tries = 0; tries < 4; tries++)
    await expect(connectHere({ ...target, attempt, limits }, patient)).rejects.toMatchObject({
      code: 'remote_connection_failed',
      message: expect.stringContaining(words),
    });
  expect(breakers.of(hops).state).toBe('closed');
});

test('a login waits for what its user does elsewhere, and tells of it', async () => {
  const words = 'Pushed a login request to your phone.';
  const port = await serveSsh(client =>
    client.on('authentication', login => {
      if (login.method !== 'keyboard-interactive') return login.reject(['keyboard-interactive']);
      // The user is slower than a host may be.
      login.prompt([], '', words, () => setTimeout(() => login.accept(), 600));
    }),
  );
  const { client, banner } = await logIn(port, { password: 'x' }, 400);
  client.end();
  expect(banner).toBe(words);
});

test.each([100, 101])('of %s questions at once, at most 100 are asked', async count => {
  const port = await serveSsh(client =>
    client.on('authentication', login => {
      if (login.method !== 'keyboard-interactive') return login.reject(['keyboard-interactive']);
      const prompts = Array.from({ length: count }, (_, n) => ({ prompt: `${n}: `, echo: true }));
      login.prompt(prompts, () => login.accept());
    }),
  );
  let asked = 0;
  const ask = async ({ prompts }: Round) => {
    asked = prompts.length;
    return prompts.map(() => 'x');
  };
  const target = { hops: [hostAt(port)] as Hops, username: 'me', credential: {}, ask };
  const login = connectHere(target, patient);
  if (count > 100)
    await expect(login).rejects.toMatchObject({
      code: 'remote_authentication_failed',
      message: expect.stringContaining('101 questions'),
    });
  else (await login).client.end();
  expect(asked).toBe(count > 100 ? 0 : 100);
});

test('a host that sends more than SSH allows is told as that', async () => {
  const port = await serveSsh(letIn, { banner: 'x'.repeat(64 << 10) });
  await expect(logIn(port, { password: 'x' })).rejects.toMatchObject({
    code: 'remote_connection_failed',
    message: expect.stringContaining(
      'it sent a message of more than 35,000 bytes, such as a banner',
    ),
  });
});

test('attempts that failed leave nothing on their signal', async () => {
  const { signal } = new AbortController();
  const silent = await listen(socket => socket.destroy());
  const refusing = await serveSsh(client => client.on('authentication', login => login.reject()));
  for (const port of [silent, refusing])
    for (const limits of [LIMITS, LIMITS])
      await connectHere(
        { hops: [hostAt(port)], username: 'me', credential: { password: 'x' }, limits },
        signal,
      ).catch(() => {});
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

test('a host that takes no connection is an error too', async () => {
  const { port, fill } = await listenAndFreeze();
  await fill();
  await expect(
    dial({ addresses: ['127.0.0.1'], port, timeoutMs: 300 }, patient),
  ).rejects.toMatchObject({
    code: 'remote_connection_failed',
    message: expect.stringContaining('no connection within 0.3 s'),
  });
});

test('an abort ends a connection attempt at once', async () => {
  const { port, fill } = await listenAndFreeze();
  await fill();
  const leaving = new AbortController();
  const dialling = dial({ addresses: ['127.0.0.1'], port, timeoutMs: 60_000 }, leaving.signal);
  leaving.abort(new Error('left'));
  await expect(dialling).rejects.toThrow('left');
  await expect(
    scanHostKeys({ address: '127.0.0.1', port, private: true }, leaving.signal),
  ).rejects.toThrow('left');
});

test('a credential goes to the destination that it was sealed for, and no byte to another', async () => {
  let connections = 0;
  const port = await serveSsh(client => {
    connections++;
    letIn(client);
  });
  const host = hostAt(port);
  const other = makeKeyPair().public;
  const target = {
    hops: [host] as Hops,
    username: 'me',
    credential: { password: 'x' },
    limits: LIMITS,
  };
  const sealedFor = [
    { ...host, port: port + 1 },
    { ...host, address: 'localhost' },
    { ...host, keys: [other] },
    { ...host, keys: [...host.keys, other] },
  ];
  for (const at of sealedFor)
    await expect(
      connect({ ...target, destination: destinationDigest([at]) }, patient),
    ).rejects.toMatchObject({
      code: 'host_changed',
    });
  expect(connections).toBe(0);
  const twice = { ...host, keys: [...host.keys, ...host.keys] };
  (
    await connect(
      { ...target, limits: undefined, destination: destinationDigest([twice]) },
      patient,
    )
  ).client.end();
  expect(connections).toBe(1);
});

test('a host that has old algorithms alone is connected to where the setting names them', async () => {
  const old = { kex: 'diffie-hellman-group14-sha1', cipher: 'aes128-cbc', hmac: 'hmac-sha1' };
  const only = { kex: [old.kex], cipher: [old.cipher], hmac: [old.hmac] };
  const algorithms = only as unknown as ssh2.Algorithms;
  const port = await serveSsh(letIn, { algorithms });
  const target = { hops: [hostAt(port)] as Hops, username: 'me', credential: { password: 'x' } };
  await expect(connectHere(target, patient)).rejects.toMatchObject({
    code: 'remote_connection_failed',
    message: expect.stringContaining('no matching key exchange algorithm'),
    hint: expect.stringContaining('SSH_ALGORITHMS'),
  });
  for (const kind of ['kex', 'cipher', 'hmac'] as const) {
    const lacking = { ...only, [kind]: CURRENT_ALGORITHMS[kind] };
    await expect(connectHere({ ...target, algorithms: lacking }, patient)).rejects.toThrow();
  }
  (await connectHere({ ...target, algorithms: only }, patient)).client.end();
});

test('a password is sent once, also where the server takes it in two ways', async () => {
  const tried: string[] = [];
  const port = await serveSsh(client =>
    client.on('authentication', login => {
      tried.push(login.method);
      login.reject(['password', 'keyboard-interactive']);
    }),
  );
  await expect(logIn(port, { password: 'wrong' })).rejects.toMatchObject({
    code: 'remote_authentication_failed',
  });
  expect(tried).toEqual(['none', 'password']);
});

test('a server that asks for the password by a dialogue is told it once, and nothing in the place of a user', async () => {
  const told: string[] = [];
  const port = await serveSsh(client =>
    client.on('authentication', login => {
      if (login.method !== 'keyboard-interactive') return login.reject(['keyboard-interactive']);
      const ask = () =>
        login.prompt([{ prompt: 'Password: ', echo: false }], answers => {
          told.push(...answers);
          if (told.includes('code')) login.accept();
          else ask();
        });
      ask();
    }),
  );
  await expect(logIn(port, { password: 'sesame' })).rejects.toMatchObject({
    code: 'remote_authentication_failed',
    message: expect.stringContaining('asks for more'),
  });
  expect(told.splice(0)).toEqual(['sesame']);
  const target = {
    hops: [hostAt(port)] as Hops,
    username: 'me',
    credential: { password: 'sesame' },
  };
  const ask = async ({ prompts }: Round) => prompts.map(() => 'code');
  (await connectHere({ ...target, ask }, patient)).client.end();
  expect(told).toEqual(['sesame', 'code']);
});

test('a key may be followed by a password and by a code, each sent once', async () => {
  const key = makeKeyPair();
  const tried: string[] = [];
  const order: ssh2.AuthenticationType[] = ['publickey', 'password', 'keyboard-interactive'];
  const port = await serveSsh(client =>
    client.on('authentication', login => {
      if (login.method !== 'none') tried.push(login.method);
      if (login.method === 'publickey' && !login.signature) return login.accept();
      const at = order.indexOf(login.method);
      const left = order.slice(at + 1);
      const proceed = () =>
        left.length > 0 ? login.reject(left.slice(0, 1), true) : login.accept();
      if (login.method === 'none') return login.reject(['publickey']);
      if (login.method !== 'keyboard-interactive') return proceed();
      login.prompt([{ prompt: 'Code: ', echo: false }], ([code]) => {
        tried.push(code ?? '');
        proceed();
      });
    }),
  );
  const asked: string[] = [];
  const ask = async ({ prompts }: Round) => {
    asked.push(...prompts.map(({ text }) => text));
    return prompts.map(({ text }) => `for ${text}`);
  };
  const target = {
    hops: [hostAt(port)] as Hops,
    username: 'me',
    credential: { privateKey: key.private },
  };
  (await connectHere({ ...target, ask }, patient)).client.end();
  expect(asked).toEqual(['Password: ', 'Code: ']);
  expect(tried).toEqual([
    ...['publickey', 'publickey', 'password', 'keyboard-interactive'],
    'for Code: ',
  ]);
});

test('a server that opens no channel, or does not answer exec, loses its connection', async () => {
  const never = await serveSsh(client => letIn(client).on('session', () => {}));
  const hangs = await serveSsh(client =>
    letIn(client).on('session', accept => accept().on('exec', () => {})),
  );
  for (const port of [never, hangs]) {
    const connection = await logIn(port, { password: 'x' });
    const session = new RemoteSession(connection, {
      spoolLimitBytes: 1,
      shell: undefined,
      openMs: 300,
    });
    const error = await session.exec('true').catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: 'remote_connection_failed',
      message: expect.stringContaining('opened no channel within 0.3 s'),
    });
    // A command without an agent must then not be run again.
    expect(mayHaveBeenSent(error)).toBe(true);
    await session.closed;
  }
});

test('a host that refuses to run a command is told as that, and nothing was run', async () => {
  const port = await serveSsh(client =>
    letIn(client).on('session', accept => accept().on('exec', (_accept, reject) => reject?.())),
  );
  const connection = await logIn(port, { password: 'x' });
  const session = new RemoteSession(connection, { spoolLimitBytes: 1, shell: undefined });
  const error = await session.exec('true').catch((thrown: unknown) => thrown);
  // It may have too many processes now. At the first login that is told as shell_unusable.
  expect(error).toMatchObject({
    code: 'remote_connection_failed',
    message: expect.stringContaining('refused to start a command'),
    cause: { unusable: { code: 'shell_unusable' } },
  });
  expect(mayHaveBeenSent(error)).toBe(false);
  expect(session.isClosed).toBe(false);
  session.close();
});

/** A listener that the kernel no longer completes connections for, once its queue is full. */
async function listenAndFreeze(): Promise<{ port: number; fill(): Promise<void> }> {
  const program =
    "const s = require('net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => console.log(s.address().port))";
  const child: ChildProcess = spawn(process.execPath, ['-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  ended.push(() => child.kill('SIGKILL'));
  const [line] = (await once(child.stdout ?? child, 'data')) as [Buffer];
  const port = Number(line.toString());
  child.kill('SIGSTOP');
  const fill = async () => {
    for (let hung = false; !hung; ) {
      const socket = connectTcp({ host: '127.0.0.1', port }).on('error', () => {});
      ended.push(() => socket.destroy());
      hung = await Promise.race([
        once(socket, 'connect').then(() => false),
        // The kernel answers a connection on loopback at once, or never.
        new Promise<boolean>(resolve => setTimeout(() => resolve(true), 500)),
      ]);
    }
  };
  return { port, fill };
}
