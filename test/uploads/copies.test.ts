import { execFileSync } from 'node:child_process';
import { truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { signalProcess } from '../../servers/processes.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import {
  beginUpload,
  finishUpload,
  makeModel,
  partPath,
  putPart,
  readUpload,
  sha256,
  someBytes,
} from '../harness/clients/uploads.ts';
import { holderOf, type Job, openSession, waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useProxiedStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

describeStack(missingPrograms('sshd'), 'copies into an upload', form => {
  const { stack, client, sshd, proxy } = useProxiedStack(form);
  let mid: string;
  let sid: string;

  beforeAll(async () => {
    ({ mid } = await makeModel(client));
    sid = await openSession(client, sshd);
  });

  const begin = () => beginUpload(client, mid, ['a']);
  const at = (name: string) => join(sshd.home, name);
  const write = (name: string, bytes: Uint8Array) => {
    writeFileSync(at(name), bytes);
    return at(name);
  };
  const ask = (uid: string, pid: number, body: object) =>
    client.fetch(partPath(uid, 0, pid), { method: 'PUT', body: JSON.stringify(body) });
  const copy = async (uid: string, pid: number, path: string, session = sid): Promise<Job> => {
    const answer = await ask(uid, pid, { sid: session, path });
    const job = (await answer.json()) as Job;
    expect([answer.status, answer.headers.get('Location'), job.kind]).toEqual([
      202,
      `/api/jobs/${job.id}`,
      'copy',
    ]);
    return job;
  };

  test('a remote file becomes a part, with an agent and without', async () => {
    const uid = await begin();
    const plain = await openSession(client, sshd, { agent: false });
    const files: [string, Uint8Array, string][] = [
      ['empty', new Uint8Array(), sid],
      [" a 'name' with $(all) of it\n*", someBytes(70_001), sid],
      ['large', someBytes(20_000_000), plain],
    ];
    const jobs = await Promise.all(
      files.map(([name, bytes, session], pid) => copy(uid, pid, write(name, bytes), session)),
    );
    for (const [pid, { id }] of jobs.entries()) {
      const bytes = files[pid]?.[1] ?? new Uint8Array();
      const result = { size: bytes.length, digest: sha256(bytes) };
      expect(await waitForEnd(client, id)).toMatchObject({ state: 'succeeded', result });
    }
    const { parts } = await readUpload(client, uid);
    expect(parts).toEqual(
      files.map(([, bytes], pid) => ({ fid: 0, pid, size: bytes.length, digest: sha256(bytes) })),
    );
    expect((await finishUpload(client, uid, [3])).status).toBe(202);
  });

  test('a repeat with its Idempotency-Key is the same copy, though session and upload have ended', async () => {
    const uid = await begin();
    const ending = await openSession(client, sshd);
    const path = write('repeated', someBytes(10));
    const ask = async () => {
      const answer = await client.fetch(partPath(uid, 0, 0), {
        method: 'PUT',
        headers: { 'Idempotency-Key': uid },
        body: JSON.stringify({ sid: ending, path }),
      });
      return { status: answer.status, ...((await answer.json()) as Job) };
    };
    const first = await ask();
    await waitForEnd(client, first.id);
    await client.delete(`/api/remotes/${ending}`);
    await client.delete(`/api/uploads/${uid}`);
    expect(await ask()).toMatchObject({ status: 202, id: first.id });
  });

  test('a copy is asked for by a form, too', async () => {
    const uid = await begin();
    const bytes = someBytes(1_000);
    const fields = { sid, path: write('by-form', bytes) };
    const multipart = new FormData();
    for (const [name, value] of Object.entries(fields)) multipart.append(name, value);
    for (const body of [new URLSearchParams(fields), multipart]) {
      const answer = await stack.api(partPath(uid, 0, 0), { method: 'PUT', body });
      expect(answer.status).toBe(202);
      await waitForEnd(client, ((await answer.json()) as Job).id);
    }
    expect((await readUpload(client, uid)).parts).toMatchObject([{ digest: sha256(bytes) }]);
  });

  test('what cannot be copied is said by its path, or by the field', async () => {
    const uid = await begin();
    execFileSync('mkfifo', [at('fifo')]);
    const expected: [string, string][] = [
      [at('missing'), 'not_found'],
      [sshd.home, 'invalid_input'],
      [at('fifo'), 'invalid_input'],
    ];
    for (const [path, code] of expected) {
      const { id } = await copy(uid, 0, path);
      const { state, error } = await waitForEnd(client, id);
      expect([state, error?.code, error?.detail]).toEqual([
        'failed',
        code,
        expect.stringContaining(path),
      ]);
    }
    await expectProblem(await ask(uid, 0, { sid, path: 'relative' }), 400, 'invalid_input');
    await expectProblem(await ask(uid, 0, { sid }), 400, 'invalid_input');
    await expectProblem(await ask(uid, 0, { sid, path: '/x', more: 1 }), 400, 'invalid_input');
    const nobody = { sid: '00000000000000000000000000', path: '/x' };
    await expectProblem(await ask(uid, 0, nobody), 404, 'session_not_found');
    expect((await readUpload(client, uid)).parts).toEqual([]);
  });

  test('a file larger than a part is refused without being read', async () => {
    const uid = await begin();
    truncateSync(write('huge', someBytes(1)), 5 * 2 ** 30 + 1);
    const { id } = await copy(uid, 0, at('huge'));
    expect(await waitForEnd(client, id)).toMatchObject({ error: { code: 'payload_too_large' } });
  });

  test('423 while a copy runs; DELETE of the upload cancels it', async () => {
    const uid = await begin();
    await putPart(client, partPath(uid, 0, 1), someBytes(5));
    proxy.blackhole('down');
    try {
      const { id } = await copy(uid, 0, write('held', someBytes(100)));
      const locked = await finishUpload(client, uid, [2]);
      await expectProblem(locked, 423, 'locked');
      expect(Number(locked.headers.get('Retry-After'))).toBeGreaterThan(0);
      expect((await client.fetch(`/api/uploads/${uid}`, { method: 'DELETE' })).status).toBe(204);
      proxy.heal();
      expect((await waitForEnd(client, id)).state).toBe('cancelled');
    } finally {
      proxy.heal();
    }
  });

  test('a lost link or worker: the copy is begun anew, and is whole', {
    timeout: 180_000,
  }, async () => {
    const uid = await begin();
    const bytes = someBytes(64 << 20);
    const path = write('long', bytes);
    proxy.cutAfter('down', 20 << 20);
    const { id } = await copy(uid, 0, path);
    const begun = proxy.bytes.down;
    try {
      await waitFor(
        () => {
          const isAgain = proxy.bytes.down - begun > 40 << 20;
          if (isAgain) proxy.blackhole('down');
          return isAgain;
        },
        { what: 'the copy to be begun again', timeoutMs: 60_000, intervalMs: 2 },
      );
      signalProcess(await holderOf(client, id), 'SIGKILL');
    } finally {
      proxy.heal();
    }
    const result = { size: bytes.length, digest: sha256(bytes) };
    expect(await waitForEnd(client, id, 120_000)).toMatchObject({ state: 'succeeded', result });
    expect((await readUpload(client, uid)).parts).toMatchObject([{ fid: 0, pid: 0, ...result }]);
  });
});
