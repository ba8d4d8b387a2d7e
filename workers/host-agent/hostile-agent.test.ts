import { PassThrough } from 'node:stream';
import { afterEach, expect, test, vi } from 'vitest';
import { AgentClient } from './client.ts';

afterEach(() => vi.useRealTimers());

const HELLO = {
  version: 1,
  node: 'n',
  boot: 'b',
  fences: '1.1',
  cores: 1,
  freeBytes: 0,
  home: '/',
  shell: 'sh',
};

/** A client of a fake agent, whose output the test writes. */
function connectTo(): {
  client: AgentClient;
  says: PassThrough;
  /** What the client has written. */
  asked: { text: string; stdin: PassThrough };
  isCut(): boolean;
} {
  const says = new PassThrough();
  const asked = { text: '', stdin: new PassThrough() };
  asked.stdin.on('data', bytes => {
    asked.text += String(bytes);
  });
  let close = (_end: { code: null; signal: null }) => {};
  const closed = new Promise<{ code: null; signal: null }>(resolve => {
    close = resolve;
  });
  let cut = false;
  const channel = {
    stdin: asked.stdin,
    stdout: says,
    stderr: new PassThrough(),
    closed,
    destroy: () => {
      cut = true;
      close({ code: null, signal: null });
    },
  };
  return { client: new AgentClient(channel, HELLO), says, asked, isCut: () => cut };
}

function answerPings({ stdin }: { stdin: PassThrough }, says: PassThrough): void {
  stdin.on('data', bytes => {
    for (const [, number] of String(bytes).matchAll(/^ping (\d+)$/gm))
      says.write(`pong ${number}\n`);
  });
}

test.each([
  ['output', `data 1 o 0 ${1 << 20}\n${'x'.repeat(1 << 20)}`],
  ['state changes', 'running 1\n'.repeat(100_000)],
])('an agent that sends endless %s is disconnected', async (_what, part) => {
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

test('a silent agent is disconnected, and pending requests fail', async () => {
  vi.useFakeTimers();
  const { client, isCut } = connectTo();
  const stopped = expect(client.stop('run')).rejects.toMatchObject({
    code: 'remote_connection_failed',
  });
  await vi.advanceTimersByTimeAsync(60_000);
  await stopped;
  expect(isCut()).toBe(true);
});

test('an agent that sends anything is not disconnected, however late its answers are', async () => {
  vi.useFakeTimers();
  const { client, says, isCut } = connectTo();
  const answers = [client.stop('run'), client.ping()];
  for (let n = 0; n < 10; n++) {
    await vi.advanceTimersByTimeAsync(50_000);
    says.write('data 1 o 0 1\nx');
  }
  expect(isCut()).toBe(false);
  says.write('halted 1 killed\npong 2\n');
  await vi.advanceTimersByTimeAsync(0);
  expect(await Promise.all(answers)).toEqual([{ result: 'killed' }, undefined]);
});

test('a request without an answer in ten minutes fails alone, and its late answer is ignored', async () => {
  vi.useFakeTimers();
  const { client, says, asked, isCut } = connectTo();
  answerPings(asked, says);
  const follow = client.follow({ id: 'run', stdout: 0, stderr: 0 });
  const stopped = expect(client.stop('run')).rejects.toMatchObject({
    code: 'remote_connection_failed',
  });
  await vi.advanceTimersByTimeAsync(599_999);
  const again = client.stop('run');
  const kept = client.forgetAll(['one', 'two', 'three']);
  await vi.advanceTimersByTimeAsync(60_001);
  await stopped;
  says.write('halted 2 survivors\nrunning 1\n');
  const numbers = asked.text.match(/(?<=^(?:stop|forget) )\d+/gm) ?? [];
  expect(numbers.length).toBe(3);
  says.write(`forgot ${numbers[2]} 1 3\nhalted ${numbers[1]} killed\n`);
  await vi.advanceTimersByTimeAsync(0);
  expect(await again).toEqual({ result: 'killed' });
  expect(await kept).toEqual(['one', 'three']);
  expect((await follow.next()).value).toEqual({ type: 'running' });
  expect(isCut()).toBe(false);
});

test('an agent that sends output but answers no ping is disconnected', async () => {
  vi.useFakeTimers();
  const { client, says, isCut } = connectTo();
  const pinged = expect(client.ping()).rejects.toMatchObject({ code: 'remote_connection_failed' });
  for (let n = 0; n < 15 && !isCut(); n++) {
    says.write('data 1 o 0 1\nx');
    await vi.advanceTimersByTimeAsync(50_000);
  }
  await pinged;
  expect(isCut()).toBe(true);
});

test('an endless list is cut short', async () => {
  const { client, says } = connectTo();
  const lists: number[] = [];
  const read = async () => {
    for await (const runs of client.list()) lists.push(runs.length);
  };
  const listing = read();
  for (let n = 1; n <= 1_100; n++) {
    const much = n === 1 ? 'item 1 run ended\n'.repeat(50_000) : `item ${n} run ended\n`;
    says.write(`${much}listed ${n} ${n * 1_000}\n`);
    await new Promise(resolve => setImmediate(resolve));
  }
  await listing;
  expect(lists[0]).toBe(1_000);
  expect(lists.length).toBe(1_000);
});

test('concurrent lists have their own runs each', async () => {
  const { client, says } = connectTo();
  const read = async () => {
    const ids: string[] = [];
    for await (const runs of client.list()) ids.push(...runs.map(run => run.id));
    return ids;
  };
  const both = Promise.all([read(), read()]);
  says.write('item 2 b ended\nitem 1 a ended\nlisted 2\nitem 1 c ended\nlisted 1\n');
  expect(await both).toEqual([['a', 'c'], ['b']]);
});

test('an answer to a stop that is none of the known ones fails the stop alone', async () => {
  const { client, says, isCut } = connectTo();
  const stopped = expect(client.stop('run')).rejects.toThrow('"halfway"');
  says.write('halted 1 halfway\n');
  await stopped;
  expect(isCut()).toBe(false);
});

test('an agent that lists a run in no known state is disconnected', async () => {
  const { client, says, isCut } = connectTo();
  const listed = expect(client.list().next()).rejects.toMatchObject({
    code: 'remote_connection_failed',
  });
  says.write('item 1 run halfway\nlisted 1\n');
  await listed;
  expect(isCut()).toBe(true);
});
