import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import type { Client } from '../../servers/api-client.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { makeTable, startParse, utf8 } from '../harness/clients/tables.ts';
import {
  beginUpload,
  makeModel,
  partPath,
  putPart,
  readUpload,
} from '../harness/clients/uploads.ts';
import { addUser } from '../harness/clients/users.ts';
import { openStackDatabase } from '../harness/databases/database.ts';
import { drawFrames } from '../harness/files/draw-frames.ts';
import { launchAsync, openSession, readOutput, waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack, useStackDatabase } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const MIB = 1 << 20;
/** LIMIT_USER_BYTES. */
const LIMIT = 4 * MIB;
const FULL = [507, 'insufficient_storage'] as const;

describeStack(missingPrograms('sshd', 'ffmpeg'), 'bytes of a user: LIMIT_USER_BYTES', form => {
  const { stack, client, sshd } = useRemoteStack(form, {
    env: { LIMIT_USER_BYTES: String(LIMIT) },
  });
  const database = useStackDatabase(stack);
  let images: string[];
  beforeAll(async () => {
    images = await drawFrames({ folder: join(sshd.home, 'frames'), count: 3 });
  });

  const storageOf = async (who: Client) =>
    (await who.get<{ storage: { bytes: number; limit: number } }>('/api/users/-')).storage;
  /** A user with `room` bytes left; what takes the rest. */
  const makeAlmostFull = async (room: number) => {
    const { client: user, username } = await addUser(client);
    const { pid, mid } = await makeModel(user);
    const filler = await beginUpload(user, mid, ['filler']);
    const { bytes } = await storageOf(user);
    const rest = Buffer.alloc(LIMIT - room - bytes);
    expect((await putPart(user, partPath(filler, 0, 0), rest)).status).toBe(200);
    return { user, username, pid, mid, filler };
  };
  /** Makes the administrator a writer of a user's project. */
  const letWrite = ({ user, username, pid }: { user: Client; username: string; pid: string }) => {
    const acl = {
      administrators: [{ user: username }],
      writers: [{ user: stack.username }],
      readers: [],
    };
    return user.fetch(`/api/projects/${pid}`, { method: 'PUT', body: JSON.stringify({ acl }) });
  };
  const objectsOf = (kind: string, id: string) => {
    const folder = join(stack.dataDir, 'objects/objects', kind, id);
    return existsSync(folder) ? readdirSync(folder) : [];
  };
  const failure = { state: 'failed', error: { code: FULL[1] } };
  const hint = expect.stringContaining('LIMIT_USER_BYTES');

  test('uploads are refused above it, those of others are not, and what goes makes room', async () => {
    const { user, username, pid, mid, filler } = await makeAlmostFull(1_000);
    expect(await storageOf(user)).toEqual({ bytes: LIMIT - 1_000, limit: LIMIT });
    const { items } = await client.get<{ items: object[] }>('/api/users?limit=1000');
    const storage = { bytes: LIMIT - 1_000, limit: LIMIT };
    expect(items).toContainEqual(expect.objectContaining({ username, storage }));
    const uid = await beginUpload(user, mid, ['a']);
    const path = partPath(uid, 0, 0);
    const refused = await expectProblem(await putPart(user, path, Buffer.alloc(1_001)), ...FULL);
    expect(refused.hint).toContain('LIMIT_USER_BYTES');
    const set = (value: string) =>
      user.fetch(`/api/models/${mid}/parameters/a`, {
        method: 'PUT',
        body: JSON.stringify({ value }),
      });
    await expectProblem(await set('x'.repeat(1_000)), ...FULL);
    const state = JSON.stringify({ text: 'x'.repeat(1_000) });
    const bookmark = () =>
      user.fetch(`/api/projects/${pid}/bookmarks`, { method: 'POST', body: state });
    await expectProblem(await bookmark(), ...FULL);
    expect((await readUpload(user, uid)).parts).toEqual([]);
    // Of a project of this user's: it counts for who stores it.
    await letWrite({ user, username, pid });
    const theirs = await beginUpload(client, mid, ['b']);
    const before = await storageOf(client);
    expect((await putPart(client, partPath(theirs, 0, 0), Buffer.alloc(2_000))).status).toBe(200);
    expect((await storageOf(client)).bytes).toBe(before.bytes + 2_000);
    expect((await putPart(user, path, Buffer.alloc(1_000))).status).toBe(200);
    expect((await putPart(user, path, Buffer.alloc(1_000))).status).toBe(200);
    await user.delete(`/api/uploads/${filler}`);
    expect(await storageOf(user)).toEqual({ bytes: 1_000, limit: LIMIT });
    expect((await set('x'.repeat(1_000))).status).toBe(200);
    expect((await bookmark()).status).toBe(201);
    // What another user removes counts no more, either.
    await client.fetch(`/api/models/${mid}`, { method: 'DELETE' });
    await waitFor(async () => (await storageOf(user)).bytes === state.length, {
      what: 'the bytes of the model to go',
    });
  });

  test('the tag of a record changes with it, and holds for writes nevertheless', async () => {
    const { user, login } = await addUserWithLogin();
    const tag = async () => (await user.fetch('/api/users/-')).headers.get('ETag') ?? '';
    const before = await tag();
    const { mid } = await makeModel(user);
    const uid = await beginUpload(user, mid, ['a']);
    await putPart(user, partPath(uid, 0, 0), Buffer.alloc(10));
    expect(await tag()).not.toBe(before);
    const change = (ifMatch: string) =>
      user.fetch(`/api/users/${login.username}`, {
        method: 'PUT',
        headers: { 'If-Match': ifMatch, 'Content-Type': 'application/json' },
        body: JSON.stringify({ password: 'another password', current: login.password }),
      });
    expect((await change(before.replace(/^"\d+/, '"77'))).status).toBe(412);
    expect((await change(before)).status).toBe(200);
  });
  const addUserWithLogin = async () => {
    const { client: user, login } = await addUser(client);
    return { user, login };
  };

  test('a command that writes without end is stopped, and its output counts until it is removed', async () => {
    const { client: user } = await addUser(client);
    const sid = await openSession(user, sshd);
    const { id } = await launchAsync(user, sid, 'exec tr "\\0" x </dev/zero');
    const ended = await waitForEnd(user, id, 120_000);
    expect(ended).toMatchObject({ ...failure, error: { code: FULL[1], hint } });
    const { bytes } = await storageOf(user);
    expect(bytes).toBe((await readOutput(user, id)).length);
    expect(bytes).toBeLessThan(LIMIT + 64 * MIB);
    const refused = await launchAsync(user, sid, 'echo more');
    expect(await waitForEnd(user, refused.id)).toMatchObject(failure);
    await user.delete(`/api/jobs/${id}/record`);
    expect((await storageOf(user)).bytes).toBe(0);
    const after = await launchAsync(user, sid, 'echo more');
    expect(await waitForEnd(user, after.id)).toMatchObject({ state: 'succeeded' });
    expect((await storageOf(user)).bytes).toBe(5);
    await user.delete(`/api/remotes/${sid}`);
  });

  test('large input of a command counts until its record goes', async () => {
    const { user } = await makeAlmostFull(50_000);
    const sid = await openSession(user, sshd);
    const { bytes } = await storageOf(user);
    const given = { command: 'cat >/dev/null' };
    const large = await launchAsync(user, sid, given.command, { stdin: 'é'.repeat(15_000) });
    await waitForEnd(user, large.id);
    const payload = JSON.stringify({ ...given, stdin: 'é'.repeat(15_000) });
    expect((await storageOf(user)).bytes).toBe(bytes + Buffer.byteLength(payload));
    const launch = (stdin: string) =>
      user.fetch('/api/remotes/launch', {
        method: 'POST',
        body: JSON.stringify({ sid, ...given, stdin }),
      });
    const refused = await expectProblem(await launch('x'.repeat(30_000)), ...FULL);
    expect(refused.hint).toContain('LIMIT_USER_BYTES');
    expect((await launch('x'.repeat(4_000))).status).toBe(200);
    await user.delete(`/api/jobs/${large.id}/record`);
    expect((await storageOf(user)).bytes).toBe(bytes);
    expect((await launch('x'.repeat(30_000))).status).toBe(200);
    // Of many at once no more than fit.
    const many = await Promise.all(Array.from({ length: 8 }, () => launch('x'.repeat(9_000))));
    const statuses = many.map(({ status }) => status).sort();
    expect(statuses).toEqual([200, 200, ...Array.from({ length: 6 }, () => 507)]);
    const counted = await storageOf(user);
    const { username } = await user.get<{ username: string }>('/api/users/-');
    await database`update user_storage set counted = null, bytes = 0 where owner = ${username}`;
    await waitFor(async () => (await storageOf(user)).bytes === counted.bytes, {
      what: 'the bytes to be counted from the rows',
      timeoutMs: 60_000,
    });
    await user.delete(`/api/remotes/${sid}`);
  });

  test('videos, views and tables fail, and leave no object', async () => {
    const { user, mid, filler } = await makeAlmostFull(MIB);
    const sid = await openSession(user, sshd);
    const table = await makeTable(user, { mid, aid: 'table', csv: 'a,b\n2,x\n1,y\n' });
    const tables = objectsOf('artifacts', mid).length;
    const body = { 'content-type': 'video/mp4', images, encode: 'worker' };
    const film = () => user.post<{ vsid: string }>(`/api/remotes/${sid}/videos`, body);
    const parse = { mid, parser: 'csv' as const, files: { other: [utf8('x\n1\n')] } };
    const { bytes } = await storageOf(user);
    const rest = Buffer.alloc(LIMIT - bytes - 100);
    expect((await putPart(user, partPath(filler, 0, 1), rest)).status).toBe(200);

    const { vsid } = await film();
    expect(await waitForEnd(user, vsid)).toMatchObject(failure);
    expect(objectsOf('videos', vsid)).toEqual([]);
    await expectProblem(await user.fetch(`${table}/rows?sort=a`), ...FULL);
    const { job } = await startParse(user, parse);
    expect(await waitForEnd(user, job)).toMatchObject(failure);
    expect(objectsOf('artifacts', mid)).toHaveLength(tables);
    // Where nothing fits any more, none is begun.
    const last = Buffer.alloc(LIMIT - (await storageOf(user)).bytes);
    expect((await putPart(user, partPath(filler, 0, 2), last)).status).toBe(200);
    const refused = await user.fetch(`/api/remotes/${sid}/videos`, {
      method: 'POST',
      body: JSON.stringify(body),
    });
    expect(await expectProblem(refused, ...FULL)).toMatchObject({ hint });

    await user.delete(`/api/uploads/${filler}`);
    const half = { mid, parser: 'csv' as const };
    const files = { good: [utf8('x\n1\n')], bad: [utf8('x\n1,2\n3\n')] };
    const { job: broken } = await startParse(user, { ...half, files });
    expect(await waitForEnd(user, broken)).toMatchObject({ state: 'failed' });
    expect(objectsOf('artifacts', mid)).toHaveLength(tables);
    const before = await storageOf(user);
    const again = await film();
    const made = await waitForEnd(user, again.vsid);
    expect(made).toMatchObject({ state: 'succeeded' });
    const folder = join(stack.dataDir, 'objects/objects/videos', again.vsid);
    const size = objectsOf('videos', again.vsid)
      .map(name => statSync(join(folder, name)).size)
      .reduce((sum, bytes) => sum + bytes);
    expect(size).toBeGreaterThan((made.result as { bytes: number }).bytes);
    expect((await storageOf(user)).bytes).toBe(before.bytes + size);
    expect((await user.fetch(`${table}/rows?sort=a`)).status).toBe(200);
    expect((await storageOf(user)).bytes).toBeGreaterThan(before.bytes + size);
    await user.delete(`/api/remotes/${sid}`);
  });

  test('what takes the place of bytes of another user counts for who stores it', async () => {
    const { user, username, pid, mid, filler } = await makeAlmostFull(MIB);
    await letWrite({ user, username, pid });
    const set = (by: Client, length = 2_000) => {
      const body = JSON.stringify({ value: 'x'.repeat(length) });
      return by.fetch(`/api/models/${mid}/parameters/a`, { method: 'PUT', body });
    };
    const parse = async (by: Client) => {
      const files = { table: [utf8('a\n1\n')] };
      return waitForEnd(by, (await startParse(by, { mid, parser: 'csv', files })).job);
    };
    const film = async (by: Client) => {
      const videos = `/api/remotes/${await openSession(by, sshd)}/videos`;
      const body = { 'content-type': 'video/mp4', images, encode: 'worker' };
      const { vsid } = await by.post<{ vsid: string }>(videos, body);
      expect(await waitForEnd(by, vsid)).toMatchObject({ state: 'succeeded' });
      return () => by.fetch(`${videos}/${vsid}?cache=project&project=${pid}&key=film`);
    };
    const [cacheTheirs, cacheOwn] = [await film(client), await film(user)];
    for (const answer of [await set(client), await cacheTheirs()]) expect(answer.status).toBe(200);
    expect(await parse(client)).toMatchObject({ state: 'succeeded' });
    const { bytes } = await storageOf(user);
    const rest = Buffer.alloc(LIMIT - bytes - 100);
    expect((await putPart(user, partPath(filler, 0, 1), rest)).status).toBe(200);

    const refused = [await parse(user), (await set(user)).status, (await cacheOwn()).status];
    expect(refused).toMatchObject([failure, 507, 507]);

    await user.delete(`/api/uploads/${filler}`);
    for (const answer of [await set(user), await cacheOwn()]) expect(answer.status).toBe(200);
    expect(await parse(user)).toMatchObject({ state: 'succeeded' });
    // What was one's own already is charged with the difference.
    const again = await beginUpload(user, mid, ['again']);
    const left = LIMIT - (await storageOf(user)).bytes - 100;
    expect((await putPart(user, partPath(again, 0, 0), Buffer.alloc(left))).status).toBe(200);
    expect((await set(user, 2_100)).status).toBe(200);
    await expectProblem(await set(user, 2_101), ...FULL);
  });

  test('of two writes at once the one that began first sees the other, too', async () => {
    const { user, mid, pid } = await makeAlmostFull(3_000);
    const { id: other } = await user.post<{ id: string }>(`/api/projects/${pid}/models`, {
      name: 'other',
      'model-type': 'any',
    });
    const set = (model: string) =>
      user.fetch(`/api/models/${model}/parameters/a`, {
        method: 'PUT',
        body: JSON.stringify({ value: 'x'.repeat(2_000) }),
      });
    const holder = openStackDatabase(stack);
    try {
      await holder`begin`;
      await holder`select from models where mid = ${mid} for update`;
      const first = set(mid);
      const isWaiting = async () =>
        (
          await database`select from pg_stat_activity where wait_event_type = 'Lock'
          and query like '%"models"%' and datname = current_database()`
        ).length > 0;
      await waitFor(isWaiting, { what: 'the first to wait for its model' });
      expect((await set(other)).status).toBe(200);
      await holder`commit`;
      await expectProblem(await first, ...FULL);
    } finally {
      await holder.end();
    }
  });

  test('what a removed user stored is forgotten', async () => {
    const { username } = await makeAlmostFull(1_000);
    const isKnown = async () =>
      (await database`select from user_storage where owner = ${username}`).length > 0;
    await waitFor(isKnown, { what: 'a count of what the user stores' });
    await client.delete(`/api/users/${username}`);
    await waitFor(async () => !(await isKnown()), {
      what: 'the count to be forgotten',
      timeoutMs: 60_000,
    });
  });
});
