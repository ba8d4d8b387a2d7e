import { createHash, randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { openStackDatabase } from '../../harness/databases/database.ts';
import { startTestSshd } from '../../harness/hosts/sshd.ts';
import { HOST_KEY } from '../fixtures.ts';
import { type Row, row } from '../row.ts';
import { expectAnswer, expectError } from '../tools.ts';

const at = (words: string) => `Remote sessions: ${words}`;
const UNKNOWN = '00000000000000000000000000';

/** Operations of remote sessions, and of the files of their hosts. */
export const REMOTES: Row[] = [
  row(
    at('POST /remotes 200 {sid}'),
    'POST /remotes',
    async ({ ask, make, world }) => {
      const opened = await ask('POST', '/remotes', { json: { ...world.host } });
      expectAnswer(opened, 200, { json: { sid: expect.any(String) } });
      await make.call('DELETE', `/remotes/${opened.json().sid}`);
    },
    'host',
  ),
  row(at('what is missing or wrong in a new session is 400'), 'POST /remotes', async ({ ask }) => {
    const good = { hostname: 'h', username: 'u' };
    for (const json of [
      {},
      { ...good, password: 'p', privateKey: 'k' },
      { ...good, privateKey: 'no key' },
      { ...good, password: 'p', other: 1 },
    ])
      expectError(await ask('POST', '/remotes', { json }), 400, { code: 'invalid_input' });
  }),
  row(
    'Remote sessions: answers without a challenge are 409 challenge_expired, a login that nobody needs 409',
    'POST /remotes/{sid}/answers, POST /remotes/{sid}/login',
    async ({ ask, make }) => {
      const sid = await make.session();
      const json = { challenge: 'none', answers: ['1'] };
      const expired = await ask('POST', `/remotes/${sid}/answers`, { json });
      expectError(expired, 409, { code: 'challenge_expired' });
      const refused = await ask('POST', `/remotes/${sid}/login`, { json: { password: 'p' } });
      expect(expectError(refused, 409, { code: 'conflict' }).hint).toMatch(/./);
      for (const [path, wrong] of [
        ['answers', { challenge: 'c' }],
        ['login', { password: 'p', privateKey: 'k' }],
      ] as const)
        expectError(await ask('POST', `/remotes/${sid}/${path}`, { json: wrong }), 400, {
          code: 'invalid_input',
        });
      const unknown = await ask('POST', `/remotes/${UNKNOWN}/answers`, { json });
      expectError(unknown, 404, { code: 'session_not_found' });
    },
    'host',
  ),
  row(
    at("403 for a host not on the allow-list, and for another port than the host's"),
    'POST /remotes',
    async ({ ask, world }) => {
      for (const more of [{ hostname: 'not-a-host.example' }, { port: 1 }]) {
        const refused = await ask('POST', '/remotes', { json: { ...world.host, ...more } });
        expect(expectError(refused, 403, { code: 'host_not_allowed' }).hint).toMatch(/./);
      }
    },
    'host',
  ),
  row(
    at('403 Remote authentication failed.'),
    'POST /remotes',
    async ({ ask, world }) => {
      const { hostname } = world.host ?? {};
      const json = { hostname, username: 'nobody-at-all', password: 'wrong' };
      const { hint } = expectError(await ask('POST', '/remotes', { json }), 403, {
        title: 'Remote authentication failed.',
        code: 'remote_authentication_failed',
      });
      expect(hint).toMatch(/./);
    },
    'host',
  ),
  row(
    at(
      '400 Missing agent configuration.; without an agent asked for, none where the host has none',
    ),
    'POST /remotes, GET /remotes/{sid}',
    async ({ ask, make, world }) => {
      const sshd = world.sshd;
      const hostname = world.name('plain');
      const json = {
        name: hostname,
        address: sshd?.host,
        port: sshd?.port,
        keys: [sshd?.hostKey],
        agent: false,
        private: true,
      };
      await make.call('POST', '/hosts', { json });
      const login = { ...world.host, hostname };
      const refused = await ask('POST', '/remotes', { json: { ...login, agent: true } });
      const { hint } = expectError(refused, 400, {
        title: 'Missing agent configuration.',
        code: 'missing_agent',
      });
      expect(hint).toMatch(/./);
      const { sid } = (await ask('POST', '/remotes', { json: login })).json();
      expect((await ask('GET', `/remotes/${sid}`)).json()).toMatchObject({
        hostname,
        agent: false,
      });
      await make.call('DELETE', `/remotes/${sid}`);
    },
    'host',
  ),
  row(
    at('500 Remote connection failed., with a hint'),
    'POST /remotes',
    async ({ ask, make, world }) => {
      const hostname = world.name('away');
      const json = { name: hostname, address: '127.0.0.1', port: 9, keys: [HOST_KEY] };
      await make.call('POST', '/hosts', { json: { ...json, private: true } });
      const login = { hostname, username: 'u', password: 'p', agent: false };
      const answer = await ask('POST', '/remotes', { json: login });
      const code = 'remote_connection_failed';
      expectError(answer, 500, { code, title: 'Remote connection failed.' });
      expect(answer.headers['x-service-hint']).toMatch(/./);
    },
    'host',
  ),
  row(
    at('500 Agent startup failed. where ~/.windlass cannot be written; with agent: false it goes'),
    'POST /remotes',
    async ({ ask, make, world }) => {
      const sshd = await startTestSshd();
      try {
        // As a home that cannot be written is to everybody but root.
        writeFileSync(join(sshd.home, '.windlass'), 'a file, not a folder');
        const hostname = world.name('closed');
        const { host: address, port, username, privateKey } = sshd;
        const host = { name: hostname, address, port, keys: [sshd.hostKey], private: true };
        await make.call('POST', '/hosts', { json: host });
        const json = { hostname, username, privateKey };
        const refused = await ask('POST', '/remotes', { json });
        const { hint } = expectError(refused, 500, {
          code: 'agent_startup_failed',
          title: 'Agent startup failed.',
        });
        expect(hint).toMatch(/"?agent"?: false/);
        const opened = await ask('POST', '/remotes', { json: { ...json, agent: false } });
        expectAnswer(opened, 200);
        await make.call('DELETE', `/remotes/${opened.json().sid}`);
      } finally {
        await sshd.stop();
      }
    },
    'host',
  ),
  row(
    at("409 when the host's key is not the pinned one, with both fingerprints"),
    'POST /remotes',
    async ({ ask, make, world }) => {
      const sshd = world.sshd;
      const hostname = world.name('changed');
      const { host: address, port } = sshd ?? {};
      const json = { name: hostname, address, port, keys: [HOST_KEY], private: true };
      await make.call('POST', '/hosts', { json });
      const answer = await ask('POST', '/remotes', { json: { ...world.host, hostname } });
      const { detail, hint } = expectError(answer, 409, { code: 'host_key_changed' });
      expect(hint).toMatch(/./);
      // The pinned one and the one that was shown, which are not the same.
      expect(new Set(detail.match(/SHA256:[\w+/]{43}/g)).size).toBe(2);
    },
    'host',
  ),
  row(
    at('GET /remotes (mine), GET /remotes/(sid); no secret ever'),
    'GET /remotes, GET /remotes/{sid}',
    async ({ ask, make, world }) => {
      const sid = await make.session();
      const found = await ask('GET', `/remotes/${sid}`);
      const { hostname, username } = world.host ?? {};
      expect(found.json()).toEqual({
        sid,
        hostname,
        username,
        agent: true,
        startup: 'once',
        env: [],
        state: 'open',
        engines: expect.any(Array),
        created: expect.any(String),
        accessed: expect.any(String),
        expires: expect.any(String),
      });
      const { accessed, expires } = found.json<Record<string, string>>();
      expect(Date.parse(expires ?? '')).toBeGreaterThan(Date.parse(accessed ?? ''));
      const listed = await ask('GET', '/remotes?limit=1000');
      const mine = { sid, hostname, username, agent: true };
      expect(listed.json().items).toContainEqual(expect.objectContaining(mine));
      for (const secret of ['sealed', 'password', 'privateKey', 'passphrase'])
        expect(listed.text).not.toContain(`"${secret}"`);
    },
    'host',
  ),
  row(
    at('accessed is written at most once a minute'),
    'GET /remotes/{sid}, POST /remotes/launch',
    async ({ ask, make, world }) => {
      const sid = await make.newSession(false);
      const use = async () => {
        const json = { sid, command: 'true' };
        expectAnswer(await ask('POST', '/remotes/launch', { json }), 200);
        return (await ask('GET', `/remotes/${sid}`)).json<Record<string, string>>().accessed ?? '';
      };
      const first = await use();
      expect(await use()).toBe(first);
      const database = openStackDatabase(world.stack);
      try {
        await database`update sessions set accessed = accessed - interval '61 seconds'
          where sid = ${sid}`;
        expect(Date.parse(await use())).toBeGreaterThanOrEqual(Date.parse(first));
      } finally {
        await database.end();
      }
      await make.call('DELETE', `/remotes/${sid}`);
    },
    'host',
  ),
  row(
    at('DELETE cancels its jobs; of an unknown one it is 404'),
    'DELETE /remotes/{sid}, GET /jobs/{id}',
    async ({ ask, make, ended }) => {
      const sid = await make.newSession();
      const json = { sid, command: 'exec sleep 600' };
      const headers = { Prefer: 'respond-async' };
      const { id } = (await make.call('POST', '/remotes/launch', { json, headers })).json();
      expectAnswer(await ask('DELETE', `/remotes/${sid}`), 204, { reason: 'Session deleted.' });
      expect(await ended(String(id))).toMatchObject({ state: 'cancelled' });
      for (const gone of [sid, UNKNOWN])
        expectError(await ask('DELETE', `/remotes/${gone}`), 404, { code: 'session_not_found' });
    },
    'host',
  ),
  row(
    at('POST /remotes/(sid)/browse/(path) 200 with arrays side by side'),
    'POST /remotes/{sid}/browse/{path}',
    async ({ ask, make }) => {
      const sid = await make.session();
      const folder = await make.folder();
      await make.run(`mkdir -p ${folder}/list/sub; printf abc > '${folder}/list/a file'`);
      const time = expect.stringMatching(/^\d{4}-.*Z$/);
      // The first slash left out, given, and escaped.
      for (const path of [`${folder}/list`, `/${folder}/list`, `/%2F${folder.slice(1)}/list`]) {
        const listed = await ask('POST', `/remotes/${sid}/browse${path}`);
        expectAnswer(listed, 200, { type: 'application/json' });
        const { names, sizes, types, mtimes, ...rest } =
          listed.json<Record<'names' | 'sizes' | 'types' | 'mtimes', unknown[]>>();
        expect(rest).toEqual({ path: `${folder}/list` });
        expect([...names].sort()).toEqual(['a file', 'sub']);
        const i = names.indexOf('a file');
        expect([sizes[i], sizes.length]).toEqual([3, 2]);
        expect([types[i], types[1 - i]]).toEqual(['f', 'd']);
        expect(mtimes).toEqual([time, time]);
      }
      expectError(await ask('POST', `/remotes/${sid}/browse/nowhere`), 404, { code: 'not_found' });
      const wrong = { json: { name: 1 } };
      const refused = await ask('POST', `/remotes/${sid}/browse${folder}`, wrong);
      const { fields } = expectError(refused, 400, { code: 'invalid_input' });
      expect(fields?.map(({ field }) => field)).toEqual(['name']);
    },
    'host',
  ),
  row(
    at('GET /remotes/(sid)/file/(path), with ranges'),
    'GET /remotes/{sid}/file/{path}',
    async ({ ask, make }) => {
      const sid = await make.session();
      const folder = await make.folder();
      await make.run(`printf 0123456789 > '${folder}/digits'`);
      const path = `/remotes/${sid}/file${folder}/digits`;
      const whole = await ask('GET', path);
      expectAnswer(whole, 200, { type: 'application/octet-stream' });
      expect(whole.text).toBe('0123456789');
      const short = await ask('GET', path.replace('/file/', '/file//'));
      expectAnswer(short, 200);
      expect(short.text).toBe('0123456789');
      const part = await ask('GET', path, { headers: { Range: 'bytes=2-4' } });
      expectAnswer(part, 206);
      expect([part.text, part.headers['content-range']]).toEqual(['234', 'bytes 2-4/10']);
      const past = await ask('GET', path, { headers: { Range: 'bytes=10-' } });
      expectError(past, 416, { code: 'range_not_satisfiable' });
      expect(past.headers['content-range']).toBe('bytes */10');
      const tag = String(whole.headers.etag);
      expect([part.headers.etag, tag]).toEqual([tag, expect.stringMatching(/^"\w+"$/)]);
      const ranged = { Range: 'bytes=2-4', 'If-Range': tag };
      expectAnswer(await ask('GET', path, { headers: ranged }), 206);
      // As long as before.
      await make.run(`printf 9876543210 > '${folder}/digits'`);
      const changed = await ask('GET', path, { headers: ranged });
      expectAnswer(changed, 200);
      expect([changed.text, changed.headers.etag === tag]).toEqual(['9876543210', false]);
    },
    'host',
  ),
  row(
    'Remote sessions, more: PUT /remotes/(sid)/file/(path) 201 or 200; ?mode, ?parents, If-None-Match, Content-Digest; DELETE 204',
    'PUT /remotes/{sid}/file/{path}, DELETE /remotes/{sid}/file/{path}',
    async ({ ask, make }) => {
      const sid = await make.session();
      const folder = await make.folder();
      const path = `${folder}/${randomUUID()}/file`;
      const put = (query = '', headers: Record<string, string> = {}, body = 'bytes') =>
        ask('PUT', `/remotes/${sid}/file${path}${query}`, {
          headers: { 'Content-Type': 'application/octet-stream', ...headers },
          body,
        });
      expectError(await put(), 404, { code: 'not_found' });
      const digest = createHash('sha256').update('bytes').digest('base64');
      const json = { path, size: 5, digest };
      expectAnswer(await put('?parents=true&mode=0640'), 201, { json });
      const listed = await make.run(`ls -l '${path}'`);
      expect(JSON.stringify(listed)).toContain('-rw-r-----');
      expectAnswer(await put('', { 'Content-Digest': `sha-256=:${digest}:` }), 200, { json });
      const wrong = { 'Content-Digest': `sha-256=:${digest}:` };
      expectError(await put('', wrong, 'others'), 400, { code: 'digest_mismatch' });
      const fresh = await put('', { 'If-None-Match': '*' }, 'others');
      expectError(fresh, 412, { code: 'precondition_failed' });
      expect((await ask('GET', `/remotes/${sid}/file${path}`)).text).toBe('bytes');
      expectAnswer(await ask('DELETE', `/remotes/${sid}/file${path}`), 204);
      expectError(await ask('DELETE', `/remotes/${sid}/file${path}`), 404, { code: 'not_found' });
    },
    'host',
  ),
];
