import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { encodeEnd, encodeEvent, encodeOutput } from '../../../api/jobs/streaming/event-frames.ts';
import type { OutputOffsets, OutputPiece } from '../../../shared/jobs/output.ts';
import { Follow, type FollowOptions, type JobEvent } from './follow.ts';
import { Http } from './http.ts';
import type { Chunk } from './lines.ts';

const stops: (() => unknown)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

type Answer = (req: IncomingMessage, res: ServerResponse) => void;

/** A connection to a service that answers so. */
async function serve(answer: Answer): Promise<Http> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  stops.push(() => server.close().closeAllConnections());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return new Http({ url: `http://127.0.0.1:${port}`, token: 'x' });
}

const follow = async (answer: Answer, options: FollowOptions = {}) =>
  new Follow(await serve(answer), Promise.resolve('job'), options);

const OUTPUT = {
  stdout: Buffer.from('eins ä\nzwei 😀\n'),
  stderr: Buffer.concat([Buffer.from([0xff, 0x00, 0xc3]), Buffer.from('Fehler\n')]),
};
const START = { stdout: 0, stderr: 0 };
const TYPE = { 'Content-Type': 'text/event-stream' };

/** What the service sends to who knows so much already, in small events. */
async function streamFrom({ stdout, stderr }: OutputOffsets): Promise<Buffer> {
  const pieces = async function* (): AsyncGenerator<OutputPiece> {
    for (const [stream, from] of [
      ['stderr', stderr],
      ['stdout', stdout],
    ] as const)
      for (let offset = from; offset < OUTPUT[stream].length; offset += 5)
        yield { stream, offset, bytes: OUTPUT[stream].subarray(offset, offset + 5) };
  };
  const at = { stdout, stderr };
  const ends = { stdout: OUTPUT.stdout.length, stderr: OUTPUT.stderr.length };
  const frames: Buffer[] = [Buffer.from(':\n\n')];
  // A job that has ended has no other state any more.
  if (stdout < ends.stdout || stderr < ends.stderr)
    frames.push(Buffer.from(encodeEvent('state', at, '{"state":"running"}')));
  for await (const { bytes } of encodeOutput(pieces(), at, true)) frames.push(bytes);
  frames.push(Buffer.from(encodeEvent('state', ends, '{"state":"succeeded"}')));
  return Buffer.concat([...frames, Buffer.from(encodeEnd(ends))]);
}

const readId = ({ headers }: IncomingMessage): OutputOffsets => {
  const [stdout = 0, stderr = 0] = String(headers['last-event-id'] ?? '0-0')
    .split('-')
    .map(Number);
  return { stdout, stderr };
};

// Two connections for each byte: beside many other tests they take half a minute.
test('wherever the stream is cut, each byte and each state comes once', {
  timeout: 120_000,
}, async () => {
  const whole = await streamFrom(START);
  const connections = new Array<number>(whole.length + 1).fill(0);
  const http = await serve(async (req, res) => {
    const position = Number(/\d+/.exec(req.url ?? ''));
    const isFirst = connections[position] === 0;
    connections[position] = (connections[position] ?? 0) + 1;
    const bytes = await streamFrom(readId(req));
    res.writeHead(200, TYPE);
    if (isFirst) res.write(bytes.subarray(0, position), () => res.destroy());
    else res.end(bytes);
  });
  const follow = async (position: number) => {
    const seen = { stdout: [] as number[], stderr: [] as number[] };
    const states: string[] = [];
    for await (const event of new Follow(http, Promise.resolve(`${position}`), {}).events()) {
      if (event.event === 'state') states.push(event.state);
      if (event.event !== 'output') continue;
      expect(event.offset).toBe(seen[event.stream].length);
      seen[event.stream].push(...event.bytes);
    }
    expect(seen).toEqual({ stdout: [...OUTPUT.stdout], stderr: [...OUTPUT.stderr] });
    expect([position, states]).toEqual([position, ['running', 'succeeded']]);
  };
  await Promise.all(connections.map((_, position) => follow(position)));
  expect(connections).toEqual([...new Array<number>(whole.length).fill(2), 1]);
});

test('a stream that ends in good order before its last event goes on', async () => {
  const whole = await streamFrom(START);
  const half = whole.indexOf('\n\n', whole.length / 2) + 2;
  let connections = 0;
  const following = await follow(async (req, res) => {
    const bytes = await streamFrom(readId(req));
    res.writeHead(200, TYPE).end(++connections === 1 ? bytes.subarray(0, half) : bytes);
  });
  const output = { stdout: '', stderr: '' };
  for await (const { stream, bytes } of following.chunks())
    output[stream] += Buffer.from(bytes).toString('latin1');
  expect(output).toEqual({
    stdout: OUTPUT.stdout.toString('latin1'),
    stderr: OUTPUT.stderr.toString('latin1'),
  });
  expect(connections).toBe(2);
});

test('it goes on from what is known, inside of an event too', async () => {
  const from = { stdout: 3, stderr: 10 };
  const given: OutputOffsets[] = [];
  // A service that sends from the beginning, whatever it is asked for.
  const following = await follow(
    async (req, res) => {
      given.push(readId(req));
      res.writeHead(200, TYPE).end(await streamFrom(START));
    },
    { from },
  );
  const chunks: Chunk[] = [];
  for await (const chunk of following.chunks()) chunks.push(chunk);
  expect(given).toEqual([from]);
  expect(chunks.every(({ stream }) => stream === 'stdout')).toBe(true);
  expect(chunks[0]?.offset).toBe(3);
  expect(Buffer.concat(chunks.map(({ bytes }) => bytes))).toEqual(OUTPUT.stdout.subarray(3));
});

test('bytes that were left out are an error, not a gap', async () => {
  const following = await follow((_req, res) => {
    const at = { stdout: 8, stderr: 0 };
    const data = JSON.stringify({ stream: 'stdout', offset: 7, text: 'x' });
    res.writeHead(200, TYPE).end(encodeEvent('output', at, data));
  });
  await expect(following.chunks().next()).rejects.toThrow('7 bytes from 0 on were left out');
});

test('204 ends it, a refusal is an error, and a service that is unreachable is asked again', async () => {
  const answers = [503, 502, 204];
  const following = await follow((_req, res) => {
    res.writeHead(answers.shift() ?? 500).end();
  });
  expect(await following.events().next()).toEqual({ done: true, value: undefined });
  expect(answers).toEqual([]);
  await expect(following.events().next()).rejects.toMatchObject({ status: 500, code: 'http_500' });
});

test('a page that a proxy answers instead of the service is an error', async () => {
  const following = await follow((_req, res) => {
    res.writeHead(200, { 'Content-Type': 'text/html' }).end('<form>Log in</form>');
  });
  await expect(following.events().next()).rejects.toMatchObject({
    name: 'WindlassError',
    code: 'foreign_answer',
    detail: expect.stringMatching(/^127\.0\.0\.1:\d+ answered with HTML\.$/),
  });
});

test('a loop that is left closes its connection', async () => {
  let closed: Promise<unknown> | undefined;
  const following = await follow(async (_req, res) => {
    closed = once(res, 'close');
    res.writeHead(200, TYPE).write((await streamFrom(START)).subarray(0, -30));
  });
  const seen: JobEvent[] = [];
  for await (const event of following.events()) {
    seen.push(event);
    break;
  }
  expect(seen).toEqual([{ event: 'state', state: 'running' }]);
  await closed;
});
