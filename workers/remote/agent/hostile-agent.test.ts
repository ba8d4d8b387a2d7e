import { PassThrough } from 'node:stream';
import { afterEach, expect, test, vi } from 'vitest';
import { AgentClient } from './client.ts';

afterEach(() => vi.useRealTimers());

const HELLO = { version: 1, node: 'n', boot: 'b', cores: 1, freeBytes: 0, home: '/', shell: 'sh' };

/** A client of what says so much, and answers nothing. */
function connectTo(): { client: AgentClient; says: PassThrough; isCut(): boolean } {
  const says = new PassThrough();
  let close = (_end: { code: null; signal: null }) => {};
  const closed = new Promise<{ code: null; signal: null }>(resolve => {
    close = resolve;
  });
  let cut = false;
  const channel = {
    stdin: new PassThrough().resume(),
    stdout: says,
    stderr: new PassThrough(),
    closed,
    destroy: () => {
      cut = true;
      close({ code: null, signal: null });
    },
  };
  return { client: new AgentClient(channel, HELLO), says, isCut: () => cut };
}

test.each([
  ['output', `data 1 o 0 ${1 << 20}\n${'x'.repeat(1 << 20)}`],
  ['signs of life', 'running 1\n'.repeat(100_000)],
])('an agent that sends %s without end is cut off', async (_what, part) => {
  const { client, says, isCut } = connectTo();
  const events = client.follow({ id: 'run', stdout: 0, stderr: 0 });
  let parts = 0;
  while (!isCut() && parts < 1_000) {
    says.write(part);
    parts++;
    await new Promise(resolve => setImmediate(resolve));
  }
  expect(parts).toBeLessThan(100);
  const readAll = async () => {
    for await (const _event of events);
  };
  await expect(readAll()).rejects.toMatchObject({ code: 'remote_connection_failed' });
});

test('an agent that does not answer is given up, and so is what waits for it', async () => {
  vi.useFakeTimers();
  const { client, isCut } = connectTo();
  const stopped = expect(client.stop('run')).rejects.toMatchObject({
    code: 'remote_connection_failed',
  });
  await vi.advanceTimersByTimeAsync(60_000);
  await stopped;
  expect(isCut()).toBe(true);
});

test('an agent is not given up while anything of it comes, however late its answers are', async () => {
  vi.useFakeTimers();
  const { client, says, isCut } = connectTo();
  const answers = [client.stop('run'), client.ping()];
  for (let n = 0; n < 10; n++) {
    await vi.advanceTimersByTimeAsync(50_000);
    says.write('data 1 o 0 1\nx');
  }
  expect(isCut()).toBe(false);
  says.write('halted run mark\npong\n');
  await vi.advanceTimersByTimeAsync(0);
  expect(await Promise.all(answers)).toEqual([{ how: 'mark' }, undefined]);
  says.write('pong\n');
  await vi.advanceTimersByTimeAsync(120_000);
  expect(isCut()).toBe(false);
});

test('an agent that answers pings alone is given up', async () => {
  vi.useFakeTimers();
  const { client, says, isCut } = connectTo();
  const stopped = expect(client.stop('run')).rejects.toMatchObject({
    code: 'remote_connection_failed',
  });
  await vi.advanceTimersByTimeAsync(59_000);
  says.write('data 1 o 0 1\nx');
  await vi.advanceTimersByTimeAsync(1_000);
  expect(isCut()).toBe(false);
  says.write('pong\n');
  await vi.advanceTimersByTimeAsync(0);
  await stopped;
  expect(isCut()).toBe(true);
});

test('of a list without end only so much is kept', async () => {
  const { client, says } = connectTo();
  const list = client.list();
  for (let n = 0; n < 50; n++) says.write('item run ended\n'.repeat(1_000));
  says.write('listed\n');
  expect((await list).length).toBe(10_000);
});
