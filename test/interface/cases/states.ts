import { expect } from 'vitest';
import { type Row, row } from '../row.ts';
import { expectAnswer, expectError } from '../tools.ts';

const STATUS = 'GET /remotes/{sid}/videos/{vsid}/status';
const VIDEO = 'GET /remotes/{sid}/videos/{vsid}';
const GONE = { title: 'Session does not exist or has timed out', code: 'session_not_found' };

/** States of videos and sessions, and what they allow. */
export const STATES: Row[] = [
  row(
    'working: ok is true, ready absent or not true',
    STATUS,
    async ({ ask, make }) => {
      const { path, vsid } = await make.longVideo();
      const status = (await ask('GET', `${path}/status`)).json();
      await make.call('DELETE', `/jobs/${vsid}`);
      expect(status).toMatchObject({ ok: true, message: expect.stringMatching(/./) });
      expect(status.ready).not.toBe(true);
      for (const debugging of ['returncode', 'stderr'])
        expect(status).not.toHaveProperty(debugging);
    },
    'host',
  ),
  row(
    'ready: ok and ready are true',
    STATUS,
    async ({ ask, make }) => {
      const { path } = await make.video();
      expect((await ask('GET', `${path}/status`)).json()).toMatchObject({ ok: true, ready: true });
    },
    'host',
  ),
  row(
    'failed: ok is false',
    STATUS,
    async ({ ask, make }) => {
      const { path, vsid } = await make.newVideo({ images: ['/nowhere/frame'] });
      await make.ended(vsid);
      const status = (await ask('GET', `${path}/status`)).json();
      expect(status).toMatchObject({ ok: false, message: expect.stringMatching(/./) });
      expect(status.ready).not.toBe(true);
    },
    'host',
  ),
  row(
    'a remote session exists: it is usable',
    'GET /remotes/{sid}, POST /remotes/launch',
    async ({ ask, make }) => {
      const sid = await make.session();
      expectAnswer(await ask('GET', `/remotes/${sid}`), 200);
      expectAnswer(await ask('POST', '/remotes/launch', { json: { sid, command: 'true' } }), 200);
    },
    'host',
  ),
  row(
    'a deleted session: status and video are 404',
    `DELETE /remotes/{sid}, ${STATUS}, ${VIDEO}`,
    async ({ ask, make }) => {
      const sid = await make.newSession();
      const json = { 'content-type': 'video/mp4', images: await make.frames() };
      const started = await make.call('POST', `/remotes/${sid}/videos`, { json });
      const path = `/remotes/${sid}/videos/${started.json().vsid}`;
      expectAnswer(await ask('DELETE', `/remotes/${sid}`), 204, { reason: 'Session deleted.' });
      for (const gone of [`${path}/status`, path]) expectError(await ask('GET', gone), 404, GONE);
    },
    'host',
  ),
  row(
    'a video must not be retrieved until the status reports completion',
    VIDEO,
    async ({ ask, make }) => {
      const { path, vsid } = await make.longVideo();
      const answer = await ask('GET', path);
      await make.call('DELETE', `/jobs/${vsid}`);
      expectError(answer, 409, { code: 'video_not_ready' });
    },
    'host',
  ),
];

/** Last of all: by then the session has been unused for most of its time. */
export const TIMED_OUT: Row[] = [
  row(
    'a session that timed out: status and video are 404',
    `GET /remotes/{sid}, ${STATUS}, ${VIDEO}`,
    async ({ ask, poll, make }) => {
      const { sid, path } = await make.abandoned();
      await poll(`/remotes/${sid}`, answer => answer.status === 404, 150_000);
      for (const gone of [`/remotes/${sid}`, `${path}/status`, path])
        expectError(await ask('GET', gone), 404, GONE);
    },
    'host',
  ),
];
