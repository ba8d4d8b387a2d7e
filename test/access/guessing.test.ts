import { expect, test } from 'vitest';
import { FailedLogins } from '../../api/identity/failed-logins.ts';
import { openDatabase } from '../../shared/database/connect.ts';
import { logIn, sendLogin } from '../harness/browser/browser-login.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { addUser, PASSWORD } from '../harness/clients/users.ts';
import { stackDatabaseUrl } from '../harness/databases/database.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack, useStackDatabase } from '../harness/stacks/use-stack.ts';

/** The addresses of one account that are delayed: see password-verifier.ts. */
const DELAYED_ADDRESSES = 4;
const DELAYED_OF_ADDRESS = 8;

describeStack(undefined, 'guessing from many addresses', form => {
  const { stack, client: admin } = useStack(form, {
    // The tests say where a request came from, as a proxy does.
    env: { TRUST_PROXY: '1', LIMIT_REQUESTS: '0', LIMIT_FAILED_LOGINS: '50' },
  });
  const database = useStackDatabase(stack);
  let addresses = 0;

  const nextAddress = () => `198.51.100.${++addresses % 250}`;
  const attempt = async (username: string, password: string, address = nextAddress()) => {
    const began = performance.now();
    const response = await sendLogin(
      stack.url,
      { username, password },
      { 'X-Forwarded-For': address },
    );
    await response.text();
    return { status: response.status, ms: performance.now() - began, response };
  };
  const wrong = () => `wrong ${Math.random()}`;
  /** Sets how many logins of the account have failed. */
  const setFailures = (username: string, failures: number) => database`
    insert into failed_logins (key, failures, began) values (${`* ${username}`}, ${failures}, now())
    on conflict (key) do update set failures = excluded.failures`;

  test('from the fifth failure on answers come later and later, right and wrong alike', async () => {
    const { username } = await addUser(admin);
    for (const failures of [0, 1, 2, 3]) {
      const { status, ms } = await attempt(username, wrong());
      expect([failures, status]).toEqual([failures, 401]);
      expect(ms).toBeLessThan(1_000);
    }
    const fifth = await attempt(username, wrong());
    const sixth = await attempt(username, wrong());
    expect([fifth.status, sixth.status]).toEqual([401, 401]);
    expect(fifth.ms).toBeGreaterThan(1_000);
    expect(sixth.ms).toBeGreaterThan(2_000);
    const right = await attempt(username, PASSWORD);
    expect(right.status).toBe(200);
    expect(right.ms).toBeGreaterThan(4_000);
    // A success forgives.
    expect((await attempt(username, wrong())).ms).toBeLessThan(1_000);
  });

  test('who is given a new password by an administrator is not delayed for the one before', async () => {
    const { username } = await addUser(admin);
    await setFailures(username, 1_000);
    const password = 'another password';
    const body = JSON.stringify({ password });
    expect((await admin.fetch(`/api/users/${username}`, { method: 'PUT', body })).status).toBe(200);
    const { status, ms } = await attempt(username, password);
    expect(status).toBe(200);
    expect(ms).toBeLessThan(5_000);
  });

  test('a right password is never refused because another process looks at one of the same account', async () => {
    const { username } = await addUser(admin);
    const open = () => openDatabase(stackDatabaseUrl(stack), { max: 8 });
    const databases = [open(), open()];
    const counts = databases.map(opened => new FailedLogins(opened, 1_000));
    const one = { address: '198.51.100.251', username };
    try {
      for (let round = 0; round < 60; round++)
        await Promise.all(
          [...counts, ...counts, ...counts, ...counts].map(async count => {
            await count.begin(one);
            await count.succeed(one);
          }),
        );
    } finally {
      await Promise.all(databases.map(opened => opened.close()));
    }
  });

  test('a password is remembered for each of many addresses that it was right from', async () => {
    const { username } = await addUser(admin);
    const addresses = Array.from({ length: 20 }, () => nextAddress());
    const ask = (address: string) =>
      stack
        .api('/api/users/-', {
          headers: {
            Authorization: `Basic ${btoa(`${username}:${PASSWORD}`)}`,
            'X-Forwarded-For': address,
          },
        })
        .then(({ status }) => status);
    for (const address of addresses) expect(await ask(address)).toBe(200);
    // What identifies a header without a look at its user.
    await database`select pg_sleep(0.6)`;
    await setFailures(username, 1_000);
    const began = performance.now();
    for (const address of addresses) expect(await ask(address)).toBe(200);
    expect(performance.now() - began).toBeLessThan(8_000);
  });

  // What is at least so late is tested at once, each with an account of its own.
  test.concurrent('an unknown name is delayed as one that somebody has', async () => {
    const { username: known } = await addUser(admin);
    const names = [known, `not-${known}`];
    for (const name of names) await setFailures(name, 5);
    for (const name of names) {
      const { status, ms } = await attempt(name, wrong());
      expect(status).toBe(401);
      expect(ms).toBeGreaterThan(2_000);
    }
  });

  test.concurrent('cookies, tokens and remembered passwords are not delayed', async () => {
    const { username, client } = await addUser(admin);
    const login = await logIn(stack, { username, password: PASSWORD });
    const { token } = await client.post<{ token: string }>('/api/users/-/tokens', {
      name: 'a program',
      scope: 'read',
    });
    await setFailures(username, 7);
    const delayed = attempt(username, wrong());
    let isAnswered = false;
    void delayed.then(() => {
      isAnswered = true;
    });
    const me = '/api/users/-';
    expect((await client.fetch(me)).status).toBe(200);
    expect((await login.fetch(me)).status).toBe(200);
    const headers = { Authorization: `Bearer ${token}` };
    expect((await fetch(`${stack.url}${me}`, { headers })).status).toBe(200);
    expect(isAnswered).toBe(false);
    const { status, ms } = await delayed;
    expect(status).toBe(401);
    expect(ms).toBeGreaterThan(8_000);
  });

  test.concurrent('a password that is remembered for one address tells another one nothing', async () => {
    const { username } = await addUser(admin);
    const [home, elsewhere] = [nextAddress(), nextAddress()];
    const ask = (password: string, address: string) =>
      stack
        .api('/api/users/-', {
          headers: {
            Authorization: `Basic ${btoa(`${username}:${password}`)}`,
            'X-Forwarded-For': address,
          },
        })
        .then(({ status }) => status);
    expect(await ask(PASSWORD, home)).toBe(200);
    await setFailures(username, 1_000);
    const guesses = Array.from({ length: DELAYED_OF_ADDRESS + 1 }, () => ask(wrong(), elsewhere));
    expect(await Promise.race(guesses)).toBe(429);
    expect(await ask(PASSWORD, elsewhere)).toBe(429);
    expect(await ask(PASSWORD, home)).toBe(200);
    expect((await attempt(username, PASSWORD, home)).status).toBe(200);
    await Promise.all(guesses);
  });

  test.concurrent('where too many wait a further one is told when to come back, and nobody is locked out for good', async () => {
    const { username } = await addUser(admin);
    await setFailures(username, 1_000);
    const all = Array.from({ length: DELAYED_ADDRESSES + 1 }, () => nextAddress()).flatMap(
      address =>
        Array.from({ length: DELAYED_OF_ADDRESS + 1 }, () => attempt(username, wrong(), address)),
    );
    const refused = (await Promise.all(all)).filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThanOrEqual(DELAYED_ADDRESSES + 1 + DELAYED_OF_ADDRESS);
    for (const { response } of refused)
      expect(Number(response.headers.get('Retry-After'))).toBeGreaterThan(0);
    const after = await attempt(username, PASSWORD);
    expect(after.status).toBe(200);
    expect(after.ms).toBeLessThan(45_000);
  });

  test.concurrent('a wrong `current` counts as a failed login, and is delayed as one', async () => {
    const { username } = await addUser(admin);
    const login = await logIn(stack, { username, password: PASSWORD });
    await setFailures(username, 4);
    const began = performance.now();
    const answer = await login.fetch(`/api/users/${username}`, {
      method: 'PUT',
      body: JSON.stringify({ password: 'another password', current: 'a wrong one' }),
    });
    await expectProblem(answer, 403, 'forbidden');
    expect(performance.now() - began).toBeGreaterThan(1_000);
    const [row] = await database`select failures from failed_logins where key = ${`* ${username}`}`;
    expect(row?.failures).toBe(5);
  });
});
