import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { logIn } from '../harness/browser/browser-login.ts';
import {
  beginUpload,
  digestField,
  finishUpload,
  makeModel,
  partPath,
  putPart,
  readUpload,
  someBytes,
} from '../harness/clients/uploads.ts';
import { type Job, launchAsync, waitForEnd } from '../harness/hosts/remote.ts';
import { describeUnless, missingPrograms } from '../harness/skip.ts';
import { missingFleet } from '../harness/stacks/fleet-servers.ts';
import {
  endApi,
  type ProxiedFleet,
  startProxiedFleet,
  waitForApi,
} from '../harness/stacks/proxied-fleet.ts';

const PART_BYTES = 50 << 20;

/** The configuration is the very one that docs/fleet.md shows. */
describeUnless(missingPrograms('sshd', 'nginx') ?? missingFleet(), 'two APIs behind nginx', () => {
  let fleet: ProxiedFleet;
  beforeAll(async () => {
    fleet = await startProxiedFleet();
  });
  afterAll(() => fleet?.stop());

  const launch = (command: string, headers: Record<string, string> = {}) =>
    fleet.client.fetch('/api/remotes/launch', {
      method: 'POST',
      headers,
      body: JSON.stringify({ sid: fleet.sid, command }),
    });

  test('the ready line names the address that clients use', () => {
    expect(fleet.stack.url).toBe(fleet.nginx.url);
  });

  test('a launch is answered, and its Location is found at the same address', async () => {
    const response = await launch('echo through');
    expect([response.status, await response.json()]).toMatchObject([200, { output: 'through\n' }]);
    const location = new URL(response.headers.get('Location') ?? '', response.url);
    expect(location.origin).toBe(fleet.nginx.url);
    const job = await fleet.client.get<Job>(location.pathname);
    expect(job.state).toBe('succeeded');
  });

  test('events come as they happen', async () => {
    const wait = 'while [ ! -e "$HOME/go" ]; do sleep 0.1; done';
    const { id } = await launchAsync(fleet.client, fleet.sid, `echo one; ${wait}; echo two`);
    const texts: unknown[] = [];
    for await (const { event, data } of fleet.client.events(id)) {
      if (event !== 'output') continue;
      texts.push(data.text);
      // The second line is printed only once the first has come through.
      if (texts.length === 1) writeFileSync(join(fleet.sshd.home, 'go'), '');
    }
    expect(texts).toEqual(['one\n', 'two\n']);
  });

  test('a part of 50 MB goes through, and comes back as it was', { timeout: 120_000 }, async () => {
    const { client } = fleet;
    const { mid } = await makeModel(client);
    const uid = await beginUpload(client, mid, ['a0']);
    const bytes = someBytes(PART_BYTES);
    const digest = { 'Content-Digest': digestField(bytes) };
    const put = await putPart(client, partPath(uid, 0, 0), bytes, digest);
    expect([put.status, await put.text()]).toEqual([200, '']);
    const { parts } = await readUpload(client, uid);
    expect(parts).toMatchObject([{ fid: 0, pid: 0, size: PART_BYTES }]);
    const finished = await finishUpload(client, uid, [1]);
    const { job } = (await finished.json()) as { job: string };
    expect(await waitForEnd(client, job)).toMatchObject({ state: 'succeeded' });
    const file = await client.fetch(`/api/models/${mid}/files/a0`);
    expect(Buffer.from(await file.arrayBuffer()).equals(bytes)).toBe(true);
    // nginx says so where it keeps a body or an answer on its own disk.
    expect(fleet.nginx.errors()).not.toMatch(/buffered to a temporary file/);
  });

  test('a page of this address may log in and write, one of an API behind it may not', async () => {
    const { nginx, stack, apis } = fleet;
    const { username, password } = stack;
    const page = await logIn(nginx, { username, password });
    expect(page.lines.join('\n')).not.toMatch(/Secure/i);
    const write = (origin: string) =>
      page.fetch('/api/projects', {
        method: 'POST',
        headers: { Origin: origin },
        body: JSON.stringify({ name: 'by cookie' }),
      });
    expect((await write(nginx.url)).status).toBe(201);
    expect((await write(`http://127.0.0.1:${apis[0]}`)).status).toBe(403);
  });

  test('with one API killed every request is served', { timeout: 60_000 }, async () => {
    const { client, apis } = fleet;
    for (const port of apis) {
      await endApi(fleet, { port, signal: 'SIGKILL' });
      for (let n = 0; n < 20; n++) {
        expect((await client.fetch('/api/users/-')).status).toBe(200);
        expect((await launch('true', { Prefer: 'respond-async' })).status).toBe(202);
      }
      await waitForApi(port);
    }
  });
});
