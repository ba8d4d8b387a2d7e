import { expect } from 'vitest';
import { type Row, row } from '../row.ts';
import { expectAnswer } from '../tools.ts';

const at = (words: string) => `Videos: ${words}`;

/** Polls that are held (RFC 7240): a status of a video, and a job. */
export const POLLS: Row[] = [
  row(
    at('status: Prefer: wait=N holds it until it differs from If-None-Match'),
    'GET /remotes/{sid}/videos/{vsid}/status, GET /jobs/{id}',
    async ({ ask, make }) => {
      const { path, vsid } = await make.newVideo();
      // What ends is told by the last of these; each names what the one before told.
      for (const where of [`${path}/status`, `/jobs/${vsid}`]) {
        let tag = '"none yet"';
        for (let told = ''; told !== 'ready'; ) {
          const headers = { Prefer: 'wait=60', 'If-None-Match': tag };
          const answer = await make.call('GET', where, { headers });
          expect(answer.status).toBe(200);
          expect(answer.headers.etag).not.toBe(tag);
          tag = answer.headers.etag ?? '';
          const { ready, state } = answer.json();
          told = ready === true || state === 'succeeded' ? 'ready' : 'working';
        }
        const headers = { Prefer: 'wait=60', 'If-None-Match': tag };
        expectAnswer(await ask('GET', where, { headers }), 304);
      }
    },
    'host',
  ),
  row(
    at(
      'status: without If-None-Match Prefer: wait=N holds it until it differs from the state at arrival',
    ),
    'GET /remotes/{sid}/videos/{vsid}/status, GET /jobs/{id}',
    async ({ ask, make, ended }) => {
      const { path, vsid } = await make.longVideo();
      const wait = { headers: { Prefer: 'wait=60' } };
      const before = (await ask('GET', `${path}/status`)).headers.etag;
      // A video of so many frames tells more and more of its progress.
      const status = await ask('GET', `${path}/status`, wait);
      expectAnswer(status, 200);
      expect(status.headers['preference-applied']).toBe('wait=60');
      expect(status.headers.etag).not.toBe(before);
      const seen = (await ask('GET', `/jobs/${vsid}`)).headers.etag;
      // Whichever arrives first: it tells of the cancel, of the end that follows it, or of what came before both.
      const [job] = await Promise.all([
        ask('GET', `/jobs/${vsid}`, wait),
        make.call('DELETE', `/jobs/${vsid}`),
      ]);
      expectAnswer(job, 200);
      expect(job.headers.etag).not.toBe(seen);
      await ended(vsid);
      // What has ended is not waited for, and differs no more.
      const last = await ask('GET', `${path}/status`, { headers: { Prefer: 'wait=60' } });
      expect(last.json()).toMatchObject({ ok: false, ready: false });
    },
    'host',
  ),
];
