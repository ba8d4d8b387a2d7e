import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  answerEndlessly,
  DISCOVERY,
  type LyingProvider,
  makeSigner,
  startLyingProvider,
} from '../../../test/harness/servers/lying-provider.ts';
import { IdentityProvider } from './identity-provider.ts';

const login = { state: 's', nonce: 'n', verifier: 'v'.repeat(43), target: '/' };
const unavailable = { code: 'unavailable' };
const unauthorized = { code: 'unauthorized' };

let server: LyingProvider;
beforeEach(async () => {
  server = await startLyingProvider();
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(async () => {
  vi.useRealTimers();
  await server.stop();
});

const connect = (issuer = server.issuer) =>
  new IdentityProvider({
    issuer,
    clientId: 'windlass',
    clientSecret: undefined,
    scopes: 'openid',
    audience: 'api',
    redirectUri: 'http://127.0.0.1/callback',
  });
const somebody = () => ({ iss: server.issuer, aud: 'api', sub: 'somebody' });
const later = (seconds: number) => vi.advanceTimersByTime(seconds * 1_000);

describe('the keys of a provider', () => {
  test('are asked for once for many access tokens at once', async () => {
    server.answer('/keys', { keys: [] });
    const token = await (await makeSigner('one')).sign(somebody());
    const provider = connect();
    const verified = Array.from({ length: 50 }, () => provider.verifyAccessToken(token));
    for (const { status } of await Promise.allSettled(verified)) expect(status).toBe('rejected');
    expect(server.asked('/keys')).toBe(1);
  });

  test.each([
    ['another name', 'two'],
    ['the same name', 'one'],
    ['no name', undefined],
  ])('have a new one within 30 s, of %s, whatever came before', async (_what, kid) => {
    const [first, second] = [
      await makeSigner(kid === undefined ? undefined : 'one'),
      await makeSigner(kid),
    ];
    server.answer('/keys', { keys: [first.jwk] });
    const provider = connect();
    const [before, after] = [await first.sign(somebody()), await second.sign(somebody())];
    await provider.verifyAccessToken(before);
    for (let n = 0; n < 100; n++)
      await expect(provider.verifyAccessToken(after)).rejects.toMatchObject(unauthorized);
    server.answer('/keys', { keys: [second.jwk] });
    later(30);
    expect(await provider.verifyAccessToken(after)).toMatchObject({ subject: 'somebody' });
    await expect(provider.verifyAccessToken(before)).rejects.toMatchObject(unauthorized);
    expect(server.asked('/keys')).toBe(2);
  });

  test('lack a withdrawn one after 10 minutes', async () => {
    const [first, second] = [await makeSigner('one'), await makeSigner('two')];
    server.answer('/keys', { keys: [first.jwk] });
    const provider = connect();
    const token = await first.sign(somebody());
    await provider.verifyAccessToken(token);
    server.answer('/keys', { keys: [second.jwk] });
    later(599);
    await provider.verifyAccessToken(token);
    later(1);
    await expect(provider.verifyAccessToken(token)).rejects.toMatchObject(unauthorized);
  });

  test('that cannot be had are asked for every 5 s, and those that are known hold on', async () => {
    const [known, other] = [await makeSigner('one'), await makeSigner('two')];
    const [token, unknown] = [await known.sign(somebody()), await other.sign(somebody())];
    const provider = connect();
    const fail = (n: number) =>
      server.answer('/keys', (_req, res) => void res.writeHead(n).end('<html>'));
    const ask = async (text: string) => {
      const before = server.asked('/keys');
      for (let n = 0; n < 20; n++)
        await expect(provider.verifyAccessToken(text)).rejects.toMatchObject(unavailable);
      return server.asked('/keys') - before;
    };
    fail(500);
    expect(await ask(token)).toBe(1);
    later(5);
    fail(200);
    expect(await ask(token)).toBe(1);
    later(5);
    server.answer('/keys', { keys: [known.jwk] });
    await provider.verifyAccessToken(token);
    later(30);
    fail(302);
    expect(await ask(unknown)).toBe(1);
    await provider.verifyAccessToken(token);
    later(600);
    expect(await ask(token)).toBe(1);
  });

  test.each([[7], [null], [[null]], [{}]])('may be no key set: %j', async keys => {
    server.answer('/keys', { keys });
    const token = await (await makeSigner('one')).sign(somebody());
    await expect(connect().verifyAccessToken(token)).rejects.toMatchObject(unavailable);
  });
});

test('an answer that does not end is given up after 1 MB', async () => {
  const signer = await makeSigner('one');
  const idToken = await signer.sign({ ...somebody(), aud: 'windlass', nonce: 'n' });
  const logIn = () => connect().finishLogin('?code=x&state=s', login);
  const verify = async () => connect().verifyAccessToken(await signer.sign(somebody()));
  server.discover({ userinfo_endpoint: `${server.issuer}/me` });
  server.answer('/keys', { keys: [signer.jwk] });
  const answers = { access_token: 'a', token_type: 'bearer', id_token: idToken };
  server.answer('/token', answers);
  server.answer('/me', { sub: 'somebody' });
  await logIn();
  const endless = answerEndlessly();
  const lies: [string, () => Promise<unknown>][] = [
    ['/me', logIn],
    ['/token', logIn],
    ['/keys', logIn],
    ['/keys', verify],
    [DISCOVERY, logIn],
  ];
  for (const [path, work] of lies) {
    server.answer('/token', answers);
    server.answer(path, endless.answer);
    await expect(work()).rejects.toMatchObject(unavailable);
  }
  // What the sockets hold, too.
  expect(endless.sent()).toBeLessThan(lies.length * 12e6);
});

describe('a discovery document', () => {
  const lies: Record<string, unknown>[] = [
    ...['authorization_endpoint', 'token_endpoint', 'jwks_uri'].flatMap(name =>
      [
        undefined,
        7,
        [],
        'keys',
        'file:///etc/passwd',
        'javascript:0',
        'http://169.254.169.254/x',
      ].map(address => ({ [name]: address })),
    ),
    { userinfo_endpoint: 'http://192.0.2.1/me' },
    { issuer: 'http://127.0.0.1:1' },
    { issuer: 7 },
  ];
  test.each(lies)('that says %j is refused, and read again', async lie => {
    const provider = connect();
    server.discover(lie);
    const begin = () => provider.beginLogin(login);
    for (let n = 0; n < 3; n++) await expect(begin()).rejects.toMatchObject(unavailable);
    const token = await (await makeSigner('one')).sign(somebody());
    await expect(provider.verifyAccessToken(token)).rejects.toMatchObject(unavailable);
    expect(server.asked(DISCOVERY)).toBe(1);
    server.discover({});
    later(5);
    expect((await begin()).href).toContain(`${server.issuer}/authorize?`);
  });

  test('may have other addresses after an hour', async () => {
    const provider = connect();
    await provider.beginLogin(login);
    server.discover({ authorization_endpoint: `${server.issuer}/moved` });
    later(3_600);
    expect((await provider.beginLogin(login)).pathname).toBe('/moved');
  });

  test('of an issuer for everybody is refused: anyone there could say anything of himself', async () => {
    const issuer = 'https://login.microsoftonline.com/common/v2.0';
    server.discover({
      issuer: 'https://login.microsoftonline.com/{tenantid}/v2.0',
      authorization_endpoint: 'https://login.microsoftonline.com/a',
      token_endpoint: 'https://login.microsoftonline.com/t',
      jwks_uri: 'https://login.microsoftonline.com/k',
    });
    const fetchHere = globalThis.fetch;
    vi.stubGlobal('fetch', () => fetchHere(`${server.issuer}${DISCOVERY}`));
    try {
      await expect(connect(issuer).beginLogin(login)).rejects.toMatchObject(unavailable);
    } finally {
      vi.unstubAllGlobals();
    }
  });
});

describe('a token', () => {
  test.each(['', 'a\u0000b', 'a\ud800', 'x'.repeat(256)])(
    'of the subject %j is of nobody',
    async sub => {
      const signer = await makeSigner('one');
      server.answer('/keys', { keys: [signer.jwk] });
      const provider = connect();
      const access = await signer.sign({ ...somebody(), sub });
      await expect(provider.verifyAccessToken(access)).rejects.toMatchObject(unauthorized);
      const id_token = await signer.sign({ ...somebody(), sub, aud: 'windlass', nonce: 'n' });
      server.answer('/token', { access_token: 'a', token_type: 'bearer', id_token });
      const logIn = provider.finishLogin('?code=x&state=s', login);
      await expect(logIn).rejects.toMatchObject({ code: 'forbidden' });
    },
  );

  test.each([
    [{}, {}, true],
    [{ typ: 'JWT' }, {}, true],
    [{ typ: 'at+jwt' }, { nonce: 'n' }, true],
    [{ typ: 'application/at+JWT' }, {}, true],
    [{ typ: 'id_token' }, {}, false],
    [{ typ: 'logout+jwt' }, {}, false],
    [{}, { aud: ['windlass', 'api'], nonce: 'n', at_hash: 'x' }, false],
    [{}, { events: {} }, false],
  ])('with %j and %j is an access token: %j', async (header, claims, isOne) => {
    const signer = await makeSigner('one');
    server.answer('/keys', { keys: [signer.jwk] });
    const verified = connect().verifyAccessToken(
      await signer.sign({ ...somebody(), ...claims }, header),
    );
    if (isOne) expect(await verified).toMatchObject({ subject: 'somebody' });
    else await expect(verified).rejects.toMatchObject(unauthorized);
  });
});
