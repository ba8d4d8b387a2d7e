import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { beforeAll, expect, test } from 'vitest';
import type { Client } from '../demo/client.ts';
import { describeForms } from './harness/forms.ts';
import { expectProblem } from './harness/problem.ts';
import { addUsers } from './harness/projects.ts';
import { launchAsync, openSession, readOutput, waitForEnd } from './harness/remote.ts';
import { missingPrograms } from './harness/skip.ts';
import type { Stack } from './harness/stack.ts';
import { useRemoteStack } from './harness/use-stack.ts';
import { waitFor } from './harness/wait-for.ts';

const MOST = 12;

describeForms(missingPrograms('sshd'), 'answers that are open for long', form => {
  const { stack, client, sshd } = useRemoteStack(form, { env: { LIMIT_STREAMS: String(MOST) } });
  let sid: string;

  beforeAll(async () => {
    sid = await openSession(client, sshd);
  });

  test('one user has LIMIT_STREAMS of them: one more is 429, for that user alone', async () => {
    const { id } = await launchAsync(client, sid, 'echo begun; sleep 600');
    await waitFor(async () => (await readOutput(client, id)).length > 0, { what: 'its output' });
    const path = `/api/jobs/${id}/events`;
    const leave = new AbortController();
    for (let n = 0; n < MOST; n++)
      expect((await client.fetch(path, { signal: leave.signal })).status).toBe(200);
    for (const refused of [path, `/api/jobs/${id}/output`]) {
      const answer = await client.fetch(refused);
      expect(answer.headers.get('Retry-After')).toBe('10');
      const problem = await expectProblem(answer, 429, 'too_many_requests');
      expect(`${problem.detail} ${problem.hint}`).toMatch(/ 12 .* LIMIT_STREAMS /);
    }
    const { other } = await addUsers(stack, ['other']);
    const own = await launchAsync(other, await openSession(other, sshd), 'echo own');
    await waitForEnd(other, own.id);
    expect(String(await readOutput(other, own.id))).toBe('own\n');
    leave.abort();
    await waitFor(async () => (await client.fetch(`/api/jobs/${id}/output`)).status === 200, {
      what: 'room for another',
    });
    await client.delete(`/api/jobs/${id}`);
  });

  test('who stops reading an output keeps nobody from it, and gets the rest later', async () => {
    const { id } = await launchAsync(client, sid, 'seq 1 5000000');
    await waitForEnd(client, id);
    const path = `/api/jobs/${id}/output?offset=7`;
    const slow = Array.from({ length: MOST - 2 }, () => openPaused(stack, client, path));
    await Promise.all(slow.map(socket => once(socket, 'connect')));
    const whole = await readOutput(client, id, 'stdout', 7);
    expect(whole.length).toBe(38_888_896 - 7);
    const [first, last] = await Promise.all([slow[0], slow.at(-1)].map(readBody));
    expect(first?.equals(whole)).toBe(true);
    expect(last?.equals(whole)).toBe(true);
    for (const socket of slow) socket.destroy();
  });
});

/** A request whose answer is not read before the socket is resumed. */
function openPaused(stack: Stack, { authorization }: Client, path: string): Socket {
  const { hostname, port, host } = new URL(stack.url);
  const socket = connect(Number(port), hostname).pause();
  socket.on('error', () => {});
  socket.write(
    `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: ${authorization}\r\nConnection: close\r\n\r\n`,
  );
  return socket;
}

async function readBody(socket: Socket | undefined): Promise<Buffer> {
  const received: Buffer[] = [];
  for await (const bytes of socket ?? []) received.push(bytes as Buffer);
  const answer = Buffer.concat(received);
  return answer.subarray(answer.indexOf('\r\n\r\n') + 4);
}
