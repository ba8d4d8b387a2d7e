import type { Client } from '../../../servers/api-client.ts';
import { makeArray } from '../../harness/clients/tables.ts';
import { beginUpload, finishUpload, partPath, putPart } from '../../harness/clients/uploads.ts';
import { addHost, openSession } from '../../harness/hosts/remote.ts';
import type { TestSshd } from '../../harness/hosts/sshd.ts';

/** Makes one thing of each kind; the names that stand for them in paths, for hooks.py. */
export async function makeSeeds(
  client: Client,
  sshd: TestSshd,
  password: string,
): Promise<Record<string, unknown>> {
  await addHost(client, sshd);
  await addHost(client, sshd, { name: 'other' });
  await client.post('/api/users', { username: 'person', password });
  const sid = await openSession(client, sshd);
  const { job } = await client.post<{ job: string }>('/api/remotes/launch', {
    sid,
    command: 'echo output; echo errors >&2',
  });
  const { id: pid } = await client.post<{ id: string }>('/api/projects', { name: 'fuzzed' });
  const { id: mid } = await client.post<{ id: string }>(`/api/projects/${pid}/models`, {
    'model-type': 'any',
    name: 'fuzzed',
  });
  await client.fetch(`/api/models/${mid}/parameters/parameter`, {
    method: 'PUT',
    body: '{"value": 1}',
  });
  const { id: bid } = await client.post<{ id: string }>(`/api/projects/${pid}/bookmarks`, { a: 1 });
  const table = new TextEncoder().encode('number,word\n1,one\n2,two\n');
  await makeArray(client, { mid, aid: 'array' });
  for (const [parser, aid] of [
    ['csv', 'table'],
    ['blob', 'file'],
  ]) {
    const body = { mid, input: true, parser, aids: [aid] };
    const { id } = await client.post<{ id: string }>('/api/uploads', body);
    await putPart(client, partPath(id, 0, 0), table);
    const accepted = await finishUpload(client, id, [1]);
    if (accepted.status !== 202) throw new Error(await accepted.text());
  }
  const uid = await beginUpload(client, mid, ['later']);
  await putPart(client, partPath(uid, 0, 0), table);
  return {
    sid,
    id: job,
    pid,
    mid,
    bid,
    uid,
    fid: '0',
    part: '0',
    key: 'key',
    parameter: 'parameter',
    table: 'table',
    array: 'array',
    file: 'file',
    name: 'other',
    username: 'person',
    folder: 'etc/ssh',
    remoteFile: 'etc/hostname',
    written: sshd.home.slice(1),
    hostKey: sshd.hostKey,
    place: { address: sshd.host, port: sshd.port, private: true },
    spare: await makeSpare(client, { mid, pid, password, hostKey: sshd.hostKey }),
  };
}

/** Some of each kind that may be removed: the names in its path, by the path of the collection. */
async function makeSpare(
  client: Client,
  { mid, pid, password, hostKey }: { mid: string; pid: string; password: string; hostKey: string },
): Promise<Record<string, Record<string, string>[]>> {
  const made: Record<string, Record<string, string>[]> = {};
  const keep = (path: string, names: Record<string, string>) => {
    made[path] = [...(made[path] ?? []), names];
  };
  const post = async (path: string, body: object) =>
    (await client.post<{ id: string }>(path, body)).id;
  for (const n of [1, 2, 3]) {
    const name = `spare-${n}`;
    keep('/projects/', { pid: await post('/api/projects', { name }) });
    const model = { name, 'model-type': 'any' };
    keep('/models/', { mid: await post(`/api/projects/${pid}/models`, model) });
    await client.fetch(`/api/models/${mid}/parameters/${name}`, {
      method: 'PUT',
      body: '{"value": 1}',
    });
    keep('/models/{mid}/parameters/', { mid, aid: name });
    keep('/bookmarks/', { bid: await post(`/api/projects/${pid}/bookmarks`, { name }) });
    keep('/uploads/', { uid: await beginUpload(client, mid, [`upload-${n}`]) });
    await client.post('/api/users', { username: name, password });
    keep('/users/', { username: name });
    await client.post('/api/hosts', { name, keys: [hostKey] });
    keep('/hosts/', { name });
    keep('/users/-/tokens/', { id: await post('/api/users/-/tokens', { name, scope: 'read' }) });
  }
  return made;
}
