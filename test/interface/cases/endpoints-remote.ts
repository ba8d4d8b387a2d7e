import { expect } from 'vitest';
import { waitFor } from '../../harness/wait-for.ts';
import { type Row, row } from '../row.ts';
import { expectAnswer, expectError } from '../tools.ts';

const STATUS = 'GET /remotes/{sid}/videos/{vsid}/status';
const VIDEO = 'GET /remotes/{sid}/videos/{vsid}';
const UNKNOWN = '00000000000000000000000000';
const GONE = { title: 'Session does not exist or has timed out', code: 'session_not_found' };
const AGENT = { title: 'Agent required', code: 'agent_required' };

/** Answers and errors of sessions, videos and launches. */
export const REMOTE_ENDPOINTS: Row[] = [
  row(
    'DELETE of a session: 204 Session deleted., no body; with and without /api',
    'DELETE /remotes/{sid}',
    async ({ ask, make }) => {
      const sid = await make.newSession(false);
      const answer = await ask('DELETE', `/remotes/${sid}`, { headers: { 'Content-Length': '0' } });
      expectAnswer(answer, 204, { reason: 'Session deleted.' });
      expect(answer.bytes).toHaveLength(0);
    },
    'host',
  ),
  row(
    'DELETE of a session: deprecated',
    'DELETE /remotes/{sid}',
    async ({ ask, make, world }) => {
      const sid = await make.newSession(false);
      const { headers } = await ask('DELETE', `/remotes/${sid}`);
      expect(headers.deprecation).toMatch(/^@\d+$/);
      const documentation = /^<([^>]+)>/.exec(String(headers.link))?.[1] ?? '';
      const { pathname } = new URL(documentation, world.url);
      expectAnswer(await ask('GET', pathname, { as: null }), 200, { type: 'text/html' });
      expect(headers.link).toMatch(/^<\S*\/api\/docs#sessions>; rel="deprecation"/);
      const { paths } = world.description.document;
      expect(paths['/api/remotes/{sid}']?.delete?.deprecated).toBe(true);
    },
    'host',
  ),
  row(
    'status of a video: 200: a video status record, application/json',
    STATUS,
    async ({ ask, make }) => {
      const { path } = await make.video();
      const status = await ask('GET', `${path}/status`);
      expectAnswer(status, 200, { type: 'application/json' });
      expect(status.json()).toMatchObject({ ok: true, message: expect.stringMatching(/./) });
    },
    'host',
  ),
  row(
    'status of a video: 400 Agent required',
    STATUS,
    async ({ ask, make }) => {
      const sid = await make.session(false);
      const answer = await ask('GET', `/remotes/${sid}/videos/${UNKNOWN}/status`);
      expectError(answer, 400, AGENT);
      expect(answer.headers['x-service-hint']).toMatch(/./);
    },
    'host',
  ),
  row('status of a video: 404 Session does not exist or has timed out', STATUS, async ({ ask }) => {
    const answer = await ask('GET', `/remotes/${UNKNOWN}/videos/${UNKNOWN}/status`);
    expectError(answer, 404, GONE);
    expect(answer.headers['x-service-hint']).toMatch(/./);
  }),
  row(
    'a video: 200: the whole video, its type as in the original request',
    VIDEO,
    async ({ ask, make }) => {
      for (const type of ['video/mp4', 'video/webm']) {
        const { path } = await make.video(type);
        const answer = await ask('GET', path);
        expectAnswer(answer, 200, { type });
        expect(answer.bytes).toHaveLength(Number(answer.headers['content-length']));
        // The file type box of MP4 (ISO/IEC 14496-12), the EBML head of WebM (RFC 8794).
        const isMp4 = answer.bytes.subarray(4, 8).equals(Buffer.from('ftyp'));
        const isWebm = answer.bytes.subarray(0, 4).equals(Buffer.from('1a45dfa3', 'hex'));
        expect([isMp4, isWebm]).toEqual([type === 'video/mp4', type === 'video/webm']);
      }
    },
    'host',
  ),
  row(
    'a video: 206: a portion of the video',
    VIDEO,
    async ({ ask, make }) => {
      const { path } = await make.video();
      const { bytes } = await make.call('GET', path);
      const part = await ask('GET', path, { headers: { Range: 'bytes=10-19' } });
      expectAnswer(part, 206, { type: 'video/mp4' });
      expect(part.headers['content-range']).toBe(`bytes 10-19/${bytes.length}`);
      expect(part.bytes).toEqual(bytes.subarray(10, 20));
    },
    'host',
  ),
  row(
    'a video: cache=project, project, key: cached, then at GET /projects/(pid)/cache/(key)',
    `${VIDEO}, GET /projects/{pid}/cache/{key}`,
    async ({ ask, make, world }) => {
      const { pid } = await make.projectWithModel();
      const { path } = await make.video();
      const key = world.name('key');
      const cached = await ask('GET', `${path}?cache=project&project=${pid}&key=${key}`);
      expectAnswer(cached, 200);
      const found = await ask('GET', `/projects/${pid}/cache/${key}`);
      expectAnswer(found, 200, { type: 'video/mp4' });
      expect(found.bytes).toEqual(cached.bytes);
    },
    'host',
  ),
  row(
    'a video: project and key are required when cache = project',
    VIDEO,
    async ({ ask, make }) => {
      const { path } = await make.video();
      expectError(await ask('GET', `${path}?cache=project&key=k`), 400, {
        title: 'Must specify project id.',
      });
      expectError(await ask('GET', `${path}?cache=project&project=p`), 400, {
        title: 'Must specify cache key.',
      });
    },
    'host',
  ),
  row(
    'a video: 400 Agent required',
    VIDEO,
    async ({ ask, make }) => {
      const answer = await ask('GET', `/remotes/${await make.session(false)}/videos/${UNKNOWN}`);
      expectError(answer, 400, AGENT);
      expect(answer.headers['x-service-hint']).toMatch(/./);
    },
    'host',
  ),
  row('a video: 404 Session does not exist or has timed out', VIDEO, async ({ ask }) => {
    const answer = await ask('GET', `/remotes/${UNKNOWN}/videos/${UNKNOWN}`);
    expectError(answer, 404, GONE);
    expect(answer.headers['x-service-hint']).toMatch(/./);
  }),
  row(
    'launch: 200: a command result record, application/json',
    'POST /remotes/launch',
    async ({ ask, make }) => {
      const json = { sid: await make.session(), command: 'echo $((6 * 7))' };
      const answer = await ask('POST', '/remotes/launch', { json });
      expectAnswer(answer, 200, { type: 'application/json' });
      expect(answer.json()).toMatchObject({ command: json.command, output: '42\n', errors: '' });
    },
    'host',
  ),
  row('launch: 400 Invalid parameters', 'POST /remotes/launch', async ({ ask }) => {
    for (const json of [{}, { sid: 's' }, { command: 'c' }, { sid: 1, command: 2 }, []])
      expectError(await ask('POST', '/remotes/launch', { json }), 400, {
        title: 'Invalid parameters',
        code: 'invalid_input',
      });
  }),
  row(
    'launch: 500 An SSH exception',
    'POST /remotes/launch',
    async ({ ask, make, world }) => {
      // Without an agent a link that breaks leaves a command's outcome unknown.
      const mark = `${await make.folder()}/${world.name('begun')}`;
      const sid = await make.newSession(false);
      const json = { sid, command: `touch ${mark}; exec sleep 600` };
      const launched = ask('POST', '/remotes/launch', { json });
      await waitFor(async () => (await make.run(`ls ${mark} || true`)).trim() !== '', {
        what: 'the command to begin',
        timeoutMs: 30_000,
      });
      await world.sshd?.disconnect();
      const failed = await launched;
      expectError(failed, 500, { code: 'outcome_unknown' });
      expect(failed.headers['x-service-message']).toMatch(/^Outcome unknown/);
      await make.call('DELETE', `/remotes/${sid}`);
    },
    'host',
  ),
];
