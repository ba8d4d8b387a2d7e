import { spawn, spawnSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { beforeAll, expect, test } from 'vitest';
import { Client } from '../../servers/api-client.ts';
import { addUsers } from '../harness/clients/projects.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { startSecondApi } from '../harness/stacks/second-api.ts';
import { useStarted } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

interface Line {
  level?: number;
  time?: string;
  requestId?: string;
  event?: { user: string; path: string; query: string };
}

for (const level of ['trace', 'fatal']) {
  describeStack(undefined, `events, LOG_LEVEL=${level}`, form => {
    const stack = useStarted(() => form.start({ env: { LOG_LEVEL: level } }));
    let count = 0;

    beforeAll(async () => {
      await addUsers(stack, ['someone', 'leaver']);
    });

    const authorization = `Basic ${btoa('someone:a long password')}`;

    /** Sends a target as it is: no client that parses addresses would. */
    const post = async (
      target: string | Buffer,
      { method = 'POST', body = '', head = '' } = {},
    ) => {
      const id = `event-${++count}`;
      const { hostname, port } = new URL(stack.url);
      const socket = connect(Number(port), hostname);
      let answer = '';
      const ended = new Promise<void>((resolve, reject) => {
        socket.on('data', bytes => {
          answer += bytes;
        });
        socket.on('error', reject);
        socket.on('close', () => resolve());
      });
      socket.write(`${method} `);
      socket.write(target);
      socket.write(
        ` HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Request-Id: ${id}\r\n${head || `Authorization: ${authorization}\r\n`}Content-Length: ${body.length}\r\n\r\n${body}`,
      );
      await ended;
      return { id, status: Number(answer.split(' ')[1]), answer };
    };
    const linesOf = (id: string): Line[] =>
      stack
        .log()
        .split('\n')
        .filter(line => line.includes(`"${id}"`))
        .map(line => JSON.parse(line));
    /** A later request's line is there: so is all that came before it. */
    const flush = async () => {
      const { id } = await post('/api/events/flush');
      await waitFor(() => linesOf(id).length > 0, { what: 'the line of an event' });
    };

    const TARGETS: [string | Buffer, string, string][] = [
      ['/events/select/model', 'select/model', ''],
      ['/api/events/zoom/in?x=1&y=2&x=3', 'zoom/in', 'x=1&y=2&x=3'],
      ['/events/%FF', '%FF', ''],
      ['/events/a%', 'a%', ''],
      ['/api/events/%zz?%', '%zz', '%'],
      ['/events/', '', ''],
      ['/events', '', ''],
      ['/events?a', '', 'a'],
      ['/events//', '/', ''],
      ['/events/a//b/../c', 'a//b/../c', ''],
      ['/events/a?b?c', 'a', 'b?c'],
      ['/events/%0A%22}%7B"},{"x":"', '%0A%22}%7B"},{"x":"', ''],
      ['http://elsewhere/api/events/absolute?q', 'absolute', 'q'],
      ['/api/events/__proto__', '__proto__', ''],
      [`/events/${'x'.repeat(8_000)}`, 'x'.repeat(8_000), ''],
    ];

    test('each is answered 204 and makes one line, whatever its bytes are', async () => {
      const sent = [];
      for (const [target, path, query] of TARGETS) {
        const { id, status, answer } = await post(target, { body: 'ignored' });
        expect([String(target), status, answer.split('\r\n\r\n')[1]]).toEqual([
          String(target),
          204,
          '',
        ]);
        sent.push({ id, path, query });
      }
      await flush();
      for (const { id, path, query } of sent) {
        expect(linesOf(id)).toEqual([
          {
            level: 30,
            time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
            event: { user: 'someone', path, query },
            requestId: id,
          },
        ]);
      }
    });

    test('an event needs credentials and POST, and has bounds; what is refused is no event', async () => {
      const refused = [
        await post('/events/a', { head: 'X-None: 1\r\n' }),
        await post('/events/a', { method: 'GET' }),
        await post('/api/events/%FF', { method: 'PUT' }),
        await post('/events/a', { method: 'HEAD' }),
        await post(`/events/${'x'.repeat(9_000)}`),
        await post('/eventsful'),
        // No HTTP: visible ASCII is all that a target holds.
        await post(Buffer.from('/events/é\u2028', 'utf8')),
        await post(Buffer.from('/events/\xff\x85', 'latin1')),
        await post('/events/\t'),
      ];
      expect(refused.map(({ status }) => status)).toEqual([
        401, 405, 405, 405, 414, 404, 400, 400, 400,
      ]);
      expect(refused[1]?.answer).toMatch(/^Allow: POST\r$/m);
      await flush();
      for (const { id } of refused)
        expect(linesOf(id).filter(line => line.event !== undefined)).toEqual([]);
    });

    /** Sends a body in chunks for as long as it is taken; the status. */
    const stream = (bytes: number, headers = {}) =>
      new Promise<number | undefined>((resolve, reject) => {
        const sending = request(`${stack.url}/api/events/body`, {
          method: 'POST',
          headers: { Authorization: authorization, 'X-Request-Id': `body-${bytes}`, ...headers },
        });
        let isAnswered = false;
        sending.on('response', response => {
          isAnswered = true;
          response.resume();
          sending.destroy();
          resolve(response.statusCode);
        });
        sending.on('error', error => {
          if (!isAnswered) reject(error);
        });
        const chunk = Buffer.alloc(64 << 10);
        let left = bytes;
        const write = () => {
          while (left > 0 && !sending.destroyed) {
            const part = chunk.subarray(0, left);
            left -= part.length;
            if (!sending.write(part)) return void sending.once('drain', write);
          }
          sending.end();
        };
        write();
      });

    test('a body is dropped, up to 16 MiB', async () => {
      const most = 16 << 20;
      expect(await stream(most)).toBe(204);
      expect(await stream(most + 1)).toBe(413);
      const declared = await post('/events/a', { head: `Authorization: ${authorization}\r\n` });
      expect(declared.status).toBe(204);
      await flush();
      expect(linesOf(`body-${most}`).map(line => line.event?.path)).toEqual(['body']);
      expect(linesOf(`body-${most + 1}`).filter(line => line.event)).toEqual([]);
    });

    test.each(['', 'abc'])(
      'an event counts that has arrived, although its sender left meanwhile: %j',
      async body => {
        const { hostname, port } = new URL(stack.url);
        const socket = connect(Number(port), hostname);
        const id = `left-after-${body.length}`;
        // The service verifies a password while the sender leaves.
        const credentials = btoa('leaver:a long password');
        socket.write(
          `POST /events/left HTTP/1.1\r\nHost: x\r\nAuthorization: Basic ${credentials}\r\nX-Request-Id: ${id}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
        );
        await new Promise<void>(resolve => socket.end(resolve));
        socket.destroy();
        const events = () => linesOf(id).flatMap(({ event }) => event ?? []);
        await waitFor(() => events().length > 0, { what: 'the line of the event' });
        expect(events()).toEqual([{ user: 'leaver', path: 'left', query: '' }]);
      },
    );

    test('an event that was answered 204 is written although the process ends, as soon as its log is read', async () => {
      const directory = makeTempDir('events');
      const fifo = join(directory.path, 'stdout');
      spawnSync('mkfifo', [fifo]);
      const held = openSync(fifo, 'r+');
      const api = await startSecondApi(stack, {}, held);
      const events = Array.from({ length: 20 }, (_, n) => `${n}/${'x'.repeat(8_000)}`);
      const client = new Client(api.url, 'someone', 'a long password');
      for (const event of events)
        expect((await client.fetch(`/api/events/${event}`, { method: 'POST' })).status).toBe(204);
      const stopped = api.stop();
      const isGone = () =>
        fetch(`${api.url}/healthz`).then(
          () => false,
          () => true,
        );
      await waitFor(isGone, { what: 'the end of the listening' });
      const reader = spawn('cat', [fifo], { stdio: ['ignore', 'pipe', 'inherit'] });
      const read = text(reader.stdout);
      await stopped;
      closeSync(held);
      const lines: Line[] = (await read)
        .trim()
        .split('\n')
        .map(line => JSON.parse(line));
      expect(lines.map(({ event }) => event?.path)).toEqual(events);
      directory.remove();
    });

    test('who leaves in the middle of a body has sent no event, and the service goes on', async () => {
      const { hostname, port } = new URL(stack.url);
      const socket = connect(Number(port), hostname);
      socket.write(
        `POST /events/left HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\nX-Request-Id: left-early\r\nContent-Length: 100\r\n\r\nabc`,
      );
      await new Promise<void>(resolve => socket.end(resolve));
      socket.destroy();
      await flush();
      expect(linesOf('left-early').filter(line => line.event)).toEqual([]);
    });
  });
}
