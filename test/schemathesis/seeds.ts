import type { Client } from '../../demo/client.ts';
import { addHost, openSession } from '../harness/remote.ts';
import type { TestSshd } from '../harness/sshd.ts';
import { beginUpload, finishUpload, partPath, putPart } from '../harness/uploads.ts';

/** Makes one thing of each kind; the names that stand for them in paths, for hooks.py. */
export async function makeSeeds(
  client: Client,
  sshd: TestSshd,
  password: string,
): Promise<Record<string, string>> {
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
    ...{ sid, id: job, pid, mid, bid, uid, fid: '0', part: '0', key: 'key' },
    ...{ parameter: 'parameter', table: 'table', file: 'file' },
    ...{ name: 'other', username: 'person', folder: 'etc/ssh', remoteFile: 'etc/hostname' },
    hostKey: sshd.hostKey,
  };
}
