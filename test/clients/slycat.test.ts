import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadOrCreateKeyPair } from '../../servers/key-pair.ts';
import { startSsh2Server } from '../../servers/ssh2-server.ts';
import { SlycatClient } from '../harness/clients/slycat-client.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { openSession } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack, useStarted } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const JSON_ONLY = { accept: 'application/json' };

/** What docs/slycat.md promises, method by method of that client. */
describeStack(missingPrograms('sshd'), "slycat-web-client's requests", form => {
  const { stack, sshd, client: admin } = useRemoteStack(form);
  const directory = makeTempDir('slycat');
  const home = directory.path;
  const hostKey = loadOrCreateKeyPair(join(home, 'host_key'));
  const host = useStarted(() => startSsh2Server({ home, hostKey, log: () => {} }));
  afterAll(() => directory.remove());
  let client: SlycatClient;
  beforeAll(async () => {
    client = await SlycatClient.connect(stack);
  });
  afterAll(() => client?.end());

  const get = <T>(path: string) => client.request<T>('GET', path, JSON_ONLY);
  const post = async (path: string, json: unknown) =>
    (await client.request<{ id: string }>('POST', path, { json })).id;
  /** post_projects() and post_project_models(). */
  async function makeModel() {
    const pid = await post('/api/projects', { name: 'A', description: 'd' });
    const model = { 'model-type': 'generic', name: 'm', marking: '', description: '' };
    return { pid, mid: await post(`/api/projects/${pid}/models`, model) };
  }

  test('connect() takes the cookies of a login, and tells a wrong password', async () => {
    expect(await get('/api/users/-')).toMatchObject({ username: stack.username });
    const { url, username } = stack;
    const wrong = SlycatClient.connect({ url, username, password: 'wrong' });
    await expect(wrong).rejects.toThrow('bad username or password');
  });

  test('get_configuration_*() read version, hosts, markings, parsers and support', async () => {
    expect(await get('/api/configuration/markings')).toEqual([
      { type: 'none', label: 'No marking' },
    ]);
    expect(await get('/api/configuration/remote-hosts')).toContainEqual({
      hostname: 'host',
      agent: true,
    });
    expect(await get('/api/configuration/support-email')).toMatchObject({ address: null });
    expect(await get('/api/configuration/version')).toMatchObject({ commit: null });
    expect(await get('/api/configuration/parsers')).toHaveProperty('items');
  });

  test('projects, models, parameters, bookmarks and events', async () => {
    const { pid, mid } = await makeModel();
    const { projects } = await get<{ projects: { _id: string }[] }>('/api/projects_list');
    expect(projects).toContainEqual(expect.objectContaining({ _id: pid, name: 'A' }));
    await client.request('PUT', `/api/projects/${pid}`, { json: { description: 'e' } });
    expect(await get(`/api/projects/${pid}`)).toMatchObject({ description: 'e' });
    const { items } = await get<{ items: { id: string }[] }>(`/api/projects/${pid}/models`);
    expect(items.map(({ id }) => id)).toEqual([mid]);
    await client.request('PUT', `/api/models/${mid}`, { json: { name: 'n' } });
    expect(await get(`/api/models/${mid}`)).toMatchObject({ name: 'n' });
    const parameter = `/api/models/${mid}/parameters/p`;
    await client.request('PUT', parameter, { json: { value: [1, 2], input: true } });
    expect(await get(parameter)).toEqual([1, 2]);
    const bid = await post(`/api/projects/${pid}/bookmarks`, { a: 1 });
    expect(await client.request('GET', `/api/bookmarks/${bid}`)).toEqual({ a: 1 });
    await client.request('POST', '/api/events/select/a?x=1');
    await client.request('DELETE', `/api/models/${mid}`);
    await client.request('DELETE', `/api/projects/${pid}`);
    await expect(get(`/api/projects/${pid}`)).rejects.toThrow(/^404/);
  });

  test('upload_files() sends slices in base64 and ends, and the table is there soon', async () => {
    const { mid } = await makeModel();
    const json = { mid, input: true, parser: 'slycat-csv-parser', aids: ['t'] };
    const uid = await post('/api/uploads', json);
    const slices = ['a,b\n1,\u00e4\n', '2,+/?\n'].map(text => Buffer.from(text));
    for (const [n, slice] of slices.entries()) {
      const form = { file: slice.toString('base64') };
      const path = `/api/uploads/${uid}/files/0/parts/${n}`;
      expect(await client.request('PUT', path, { form })).toEqual(Buffer.alloc(0));
    }
    const finished = { json: { uploaded: [slices.length] } };
    await client.request('POST', `/api/uploads/${uid}/finished`, finished);
    // delete_upload() is asked until it is not 409.
    const removed = await client.send('DELETE', `/api/uploads/${uid}`, { isBasic: false });
    expect(removed.status).toBe(403);
    await waitFor(
      async () => {
        const { parses } = await get<{ parses: { state: string }[] }>(`/api/models/${mid}`);
        return parses[0]?.state === 'done';
      },
      { what: 'the table to be parsed' },
    );
    expect(await get(`/api/models/${mid}/tables/t/rows`)).toMatchObject({
      rows: [
        [1, 'ä'],
        [2, '+/?'],
      ],
    });
  });

  test('a slice of 10 MB arrives as it was', async () => {
    const { mid } = await makeModel();
    const json = { mid, input: true, parser: 'slycat-blob-parser', aids: ['f'] };
    const uid = await post('/api/uploads', json);
    const slice = Buffer.alloc(10_000_000, Buffer.from([0, 255, 251, 239, 190, 7, 62]));
    const form = { file: slice.toString('base64') };
    await client.request('PUT', `/api/uploads/${uid}/files/0/parts/0`, { form });
    await client.request('POST', `/api/uploads/${uid}/finished`, { json: { uploaded: [1] } });
    const path = `/api/models/${mid}/files/f`;
    const found = await waitFor(
      async () => {
        const { status, body } = await client.send('GET', path);
        return status === 200 ? body : undefined;
      },
      { what: 'the file to be there' },
    );
    expect(found.equals(slice)).toBe(true);
  });

  test('a file of a host is browsed and read; what would keep it in a cache is refused', async () => {
    writeFileSync(join(sshd.home, 'a file.txt'), 'hello');
    const sid = await openSession(admin, sshd);
    const filters = { 'file-reject': '(jpg)', 'file-allow': '(txt)' };
    const browse = `/api/remotes/${sid}/browse${sshd.home}`;
    expect(await client.request('POST', browse, { json: filters })).toMatchObject({
      names: expect.arrayContaining(['a file.txt']),
    });
    const path = `/api/remotes/${sid}/file${sshd.home}/a%20file.txt`;
    expect(await client.request('GET', path)).toEqual(Buffer.from('hello'));
    const cached = client.request('GET', `${path}?cache=project&project=p&key=k`);
    await expect(cached).rejects.toThrow(/^400.*cache.*project.*key/);
    await client.request('DELETE', `/api/remotes/${sid}`);
  });

  test('post_remotes() opens a session, with null for the agent', async () => {
    const { port, username, password } = host;
    const keys = [hostKey.public];
    const entry = { name: 'plain', address: '127.0.0.1', port, keys, agent: false, private: true };
    await admin.post('/api/hosts', entry);
    const json = { hostname: 'plain', username, password, agent: null };
    const { sid } = await client.request<{ sid: string }>('POST', '/api/remotes', { json });
    expect(await get(`/api/remotes/${sid}`)).toMatchObject({ agent: false, state: 'open' });
    await client.request('DELETE', `/api/remotes/${sid}`);
  });
});
