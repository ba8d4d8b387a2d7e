import { once } from 'node:events';
import { type AddressInfo, connect as connectTcp, createServer } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { HostRow } from '../../shared/database/schema.ts';
import type { Hops } from '../../shared/ssh/hops.ts';
import { fingerprint, keyBytes } from '../../shared/ssh/keys.ts';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import { connectHere } from '../../test/harness/hosts/connect-here.ts';
import {
  certifiedHost,
  certify,
  certifyHost,
  type KeyFile,
  type KeyType,
  makeKeyFile,
} from '../../test/harness/hosts/host-authority.ts';
import { startTestSshd, type TestSshd } from '../../test/harness/hosts/sshd.ts';
import { startTcpProxy, type TcpProxy } from '../../test/harness/servers/tcp-proxy.ts';
import { describeUnless, missingPrograms } from '../../test/harness/skip.ts';
import type { Target } from './connect.ts';
import { SeenCertificates } from './trusted-keys.ts';

const patient = new AbortController().signal;

describeUnless(missingPrograms('sshd', 'ssh'), 'hosts known by an authority', () => {
  const directory = makeTempDir('certified');
  const makeKey = (type?: KeyType, bits?: string) => makeKeyFile(directory.path, type, bits);
  const [authority, stranger, hostKey] = [makeKey(), makeKey(), makeKey()];
  const pin = ({ public: line }: KeyFile) => `@cert-authority localhost ${line}`;
  let sshd: TestSshd;
  let proxy: TcpProxy;
  const ended: (() => unknown)[] = [];
  const sign = (...options: string[]) => certify(authority, hostKey, '-h', ...options);

  beforeAll(async () => {
    sign('-n', 'localhost');
    sshd = await startTestSshd({ lines: ['LogLevel VERBOSE', ...certifiedHost(hostKey)] });
    proxy = await startTcpProxy(sshd);
  });
  afterEach(async () => {
    proxy.leadTo(sshd.port);
    for (const end of ended.splice(0).reverse()) await end();
  });
  afterAll(async () => {
    await proxy.stop();
    await sshd.stop();
    directory.remove();
  });

  /** A port that forwards each connection to the port that `next` returns. */
  async function relay(next: () => number): Promise<number> {
    const server = createServer(socket => {
      const to = connectTcp(next(), '127.0.0.1').on('error', () => {});
      socket.on('error', () => to.destroy()).once('close', () => to.destroy());
      to.once('close', () => socket.destroy());
      socket.pipe(to).pipe(socket);
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    ended.push(() => server.close());
    return (server.address() as AddressInfo).port;
  }
  /** sshd reads its keys when it starts. */
  const reread = async () => {
    await sshd.down();
    await sshd.up();
  };
  const entry = (port: number, keys: string[]) =>
    ({ name: 'node', address: 'localhost', port, keys, private: true }) as HostRow;
  const target = (keys: string[], more: Partial<Target> = {}, port = proxy.port) => {
    const { username, privateKey } = sshd;
    return { hops: [entry(port, keys)] as Hops, username, credential: { privateKey }, ...more };
  };
  const logIn = async (...given: Parameters<typeof target>) => {
    const { client } = await connectHere(target(...given), patient);
    const closed = once(client, 'close');
    client.end();
    await closed;
  };
  /** The whole message that the user gets. */
  const refused = async (keys: string[], more: Partial<Target> = {}) => {
    const error = await logIn(keys, more).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'host_key_changed', retryable: false });
    return (error as Error).message;
  };
  const refusal = (what: string, remark: string, by = authority) =>
    `Host key changed: node ${what}, pinned is the authority ${fingerprint(keyBytes(by.public))}; ${remark}.`;
  const shows = ({ public: line }: { public: string }) => `shows ${fingerprint(keyBytes(line))}`;
  const NONE = 'shows no key that is trusted';

  test('a certificate of the pinned authority lets in, and is asked for once', async () => {
    const before = proxy.connections.total;
    const seen = new SeenCertificates();
    const keys = [pin(authority)];
    for (const connections of [2, 3, 4]) {
      await logIn(keys, { seen });
      expect(proxy.connections.total - before).toBe(connections);
    }
    // Other hops are asked anew.
    await logIn(keys, { seen }, sshd.port);
  });

  test.each([
    ['ecdsa', '256'],
    ['ecdsa', '384'],
    ['ecdsa', '521'],
    ['rsa', '3072'],
  ] as const)(
    'so does a host key of the type %s %s, signed by its like, where all others are of other types',
    async (type, bits) => {
      const [by, key] = [makeKey(type, bits), makeKey(type, bits)];
      certifyHost(by, key, 'localhost');
      const other = await startTestSshd({ lines: certifiedHost(key) });
      ended.push(() => other.stop());
      const { username, privateKey, port } = other;
      await logIn([pin(by)], { username, credential: { privateKey } }, port);
    },
  );

  test.each([
    'diffie-hellman-group14-sha256',
    'diffie-hellman-group18-sha512',
    'ecdh-sha2-nistp521',
  ])('so does one that knows no key exchange but %s', async kex => {
    const lines = [...certifiedHost(hostKey), `KexAlgorithms ${kex}`];
    const other = await startTestSshd({ lines });
    ended.push(() => other.stop());
    const { username, privateKey, port } = other;
    await logIn([pin(authority)], { username, credential: { privateKey } }, port);
  });

  test('a renewed certificate of a new key lets in as the entry stands', async () => {
    const seen = new SeenCertificates();
    await logIn([pin(authority)], { seen });
    const renewed = makeKey('ecdsa');
    certifyHost(authority, renewed, 'localhost');
    const other = await startTestSshd({ lines: certifiedHost(renewed) });
    ended.push(() => other.stop());
    proxy.leadTo(other.port);
    const { username, privateKey } = other;
    for (let n = 0; n < 2; n++)
      await logIn([pin(authority)], { seen, username, credential: { privateKey } });
  });

  test('machines that take turns at one address are all let in', async () => {
    const key = makeKey();
    certifyHost(authority, key, 'localhost');
    const other = await startTestSshd({ lines: certifiedHost(key) });
    ended.push(() => other.stop());
    const logins = { [sshd.port]: sshd, [other.port]: other };
    const ports = [sshd.port, other.port];
    let turn = 0;
    const port = await relay(() => ports[turn++ % 2] ?? 0);
    const seen = new SeenCertificates();
    // The accounts have different keys: the host that answers refuses one of them, after its own key was verified.
    for (const { username, privateKey } of Object.values(logins)) {
      const login = logIn([pin(authority)], { seen, username, credential: { privateKey } }, port);
      await login.catch((error: unknown) =>
        expect(error).toMatchObject({ code: 'remote_authentication_failed' }),
      );
    }
  });

  test('where a key is pinned besides, either is enough', async () => {
    const own = hostKey.public;
    const connections = async (keys: string[], seen?: SeenCertificates) => {
      const before = proxy.connections.total;
      await logIn(keys, { seen });
      return proxy.connections.total - before;
    };
    const seen = new SeenCertificates();
    // The host is asked for its certificate where it shows another key.
    expect(await connections([own, pin(stranger)])).toBe(1);
    expect(await connections([stranger.public, pin(authority)], seen)).toBe(3);
    expect(await connections([stranger.public, pin(authority)], seen)).toBe(1);
    // The pinned key is of a type of which the host has none.
    expect(await connections([makeKey('rsa').public, pin(authority)])).toBe(4);
    expect(await refused([stranger.public, pin(stranger)])).toMatch(
      /^Host key changed: node shows SHA256:\S+, pinned is SHA256:\S+, the authority SHA256:\S+; its certificate is signed by SHA256:\S+, which is no pinned authority\.$/,
    );
  });

  test('what is wrong with a certificate is told, and nothing is logged in to', async () => {
    const logins = () =>
      sshd.log().match(/Accepted publickey|Connection closed by auth/g)?.length ?? 0;
    const cases: [string[], string][] = [
      [
        ['-n', 'localhost', '-V', '20200101000000Z:20210101000000Z'],
        'was valid until 2021-01-01T00:00:00.000Z',
      ],
      [
        ['-n', 'localhost', '-V', '21000101000000Z:21010101000000Z'],
        'is valid from 2100-01-01T00:00:00.000Z on; here it is ',
      ],
      [['-n', 'node,elsewhere'], 'is for node, elsewhere, not for localhost'],
      [[], 'names no host that it is for'],
      [
        ['-n', 'localhost', '-O', 'critical:only@here=x'],
        "has critical options that a host's has not: only@here",
      ],
    ];
    const before = logins();
    for (const [options, remark] of cases) {
      sign(...options);
      await reread();
      const message = await refused([pin(authority)]);
      expect(message).toContain(refusal(NONE, `its certificate ${remark}`).slice(0, -1));
    }
    certify(authority, hostKey, '-n', 'localhost');
    await reread();
    const message = await refused([pin(authority)]);
    expect(message).toBe(refusal(NONE, "its certificate is a user's, not a host's"));
    sign('-n', 'localhost');
    await reread();
    const by = `is signed by ${fingerprint(keyBytes(authority.public))}, which is no pinned authority`;
    expect(await refused([pin(stranger)])).toBe(refusal(NONE, `its certificate ${by}`, stranger));
    expect(logins()).toBe(before);
    const plain = await startTestSshd();
    ended.push(() => plain.stop());
    proxy.leadTo(plain.port);
    expect(await refused([pin(authority)])).toBe(
      refusal(NONE, 'it shows no certificate of a host'),
    );
  });

  test('an authority whose patterns are of other hosts is none', async () => {
    const elsewhere = `@cert-authority *.example.org ${authority.public}`;
    expect(await refused([elsewhere])).toBe(
      'Host key changed: node shows no key that is trusted, pinned is none for localhost.',
    );
  });

  test('who shows the true certificate without its key is refused, and is told nothing', async () => {
    const impostor = await startTestSshd({ lines: ['LogLevel VERBOSE'] });
    ended.push(() => impostor.stop());
    let connections = 0;
    const port = await relay(() => (connections++ === 1 ? impostor.port : sshd.port));
    const error = await logIn([pin(authority)], {}, port).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'host_key_changed' });
    expect((error as Error).message).toContain(shows({ public: impostor.hostKey }));
    expect(connections).toBeGreaterThan(2);
    expect(impostor.log()).toContain('Connection from');
    expect(impostor.log()).not.toMatch(/publickey|password|userauth/i);
  });

  test('a certificate that was seen does not count longer than it is valid', async () => {
    const seen = new SeenCertificates();
    sign('-n', 'localhost', '-V', '-1m:+2s');
    await reread();
    await logIn([pin(authority)], { seen });
    await expect
      .poll(() => refused([pin(authority)], { seen }).catch(String), { timeout: 20_000 })
      .toContain('its certificate was valid until');
    sign('-n', 'localhost');
    await reread();
    await logIn([pin(authority)], { seen });
  });

  test('each hop through a jump host may be known by an authority', async () => {
    const key = makeKey();
    const sign = (...options: string[]) => certifyHost(authority, key, ...(options as [string]));
    sign('localhost');
    const inner = await startTestSshd({ lines: certifiedHost(key) });
    ended.push(() => inner.stop());
    const jump = { ...entry(proxy.port, [pin(authority)]), name: 'gate' };
    const node = { ...entry(inner.port, [pin(authority)]), private: false };
    const { username, privateKey } = inner;
    const credential = {
      privateKey,
      jump: { username: sshd.username, privateKey: sshd.privateKey },
    };
    const hops = [jump, node] as Hops;
    const seen = new SeenCertificates();
    const before = proxy.connections.total;
    for (const connections of [2, 3]) {
      await logIn([], { hops, username, credential, seen });
      expect(proxy.connections.total - before).toBe(connections);
    }
    sign('elsewhere');
    await inner.down();
    await inner.up();
    const error = await logIn([], { hops, username, credential }).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({
      code: 'host_key_changed',
      message: expect.stringContaining('node shows no key that is trusted'),
    });
  });
});
