import { expect } from 'vitest';
import { type Row, row } from '../row.ts';
import { expectAnswer, expectError } from '../tools.ts';

const at = (words: string) => `decisions, Jobs: ${words}`;

/** decisions.md, Jobs. */
export const JOB_ROWS: Row[] = [
  row(
    at('GET /jobs, GET /jobs/(id)'),
    'GET /jobs, GET /jobs/{id}',
    async ({ ask, make }) => {
      const id = await make.command();
      const job = (await ask('GET', `/jobs/${id}`)).json();
      expect(job).toMatchObject({ id, kind: 'command', state: 'succeeded', error: null });
      expect(job).toMatchObject({ result: { returncode: 0 } });
      for (const time of ['created', 'started', 'finished'])
        expect(job[time]).toMatch(/^\d{4}-.*Z$/);
      for (const path of ['/jobs', '/jobs?limit=1'])
        expect((await ask('GET', path)).json().items).toContainEqual(expect.anything());
    },
    'host',
  ),
  row(
    at('GET /jobs/(id)/events: state first, then output; Last-Event-ID resumes'),
    'GET /jobs/{id}/events',
    async ({ ask, make }) => {
      const id = await make.command();
      const whole = await ask('GET', `/jobs/${id}/events`);
      expectAnswer(whole, 200, { type: 'text/event-stream' });
      const events = readEvents(whole.text);
      expect(events[0]).toMatchObject({ event: 'state', data: { state: 'succeeded' } });
      expect(events).toContainEqual({
        event: 'output',
        id: expect.any(String),
        data: { stream: 'stdout', offset: 0, text: 'a\nb\nc\n' },
      });
      const headers = { 'Last-Event-ID': '4-1' };
      const rest = readEvents((await ask('GET', `/jobs/${id}/events`, { headers })).text);
      expect(rest.filter(({ event }) => event === 'output').map(({ data }) => data)).toEqual([
        { stream: 'stdout', offset: 4, text: 'c\n' },
      ]);
    },
    'host',
  ),
  row(
    at('progress events {progress, message?}, 0 to 1'),
    'GET /jobs/{id}/events',
    async ({ ask, make }) => {
      const { vsid } = await make.video();
      const events = readEvents((await ask('GET', `/jobs/${vsid}/events`)).text);
      const told = events.find(({ event }) => event === 'progress');
      expect(told).toMatchObject({ data: { progress: 1 } });
    },
    'host',
  ),
  row(
    at('an output event is text, or base64 where it is no UTF-8; its id is both offsets'),
    'GET /jobs/{id}/events',
    async ({ ask, make }) => {
      const json = { sid: await make.session(), command: "printf '\\377'" };
      const { job } = (await make.call('POST', '/remotes/launch', { json })).json();
      expect(readEvents((await ask('GET', `/jobs/${job}/events`)).text)).toContainEqual({
        event: 'output',
        id: '1-0',
        data: { stream: 'stdout', offset: 0, base64: '/w==' },
      });
    },
    'host',
  ),
  row(
    at('GET /jobs/(id)/output?stream=&offset=: the bytes from there on; Output-Complete'),
    'GET /jobs/{id}/output',
    async ({ ask, make }) => {
      const path = `/jobs/${await make.command()}/output`;
      for (const [query, text] of [
        ['', 'a\nb\nc\n'],
        ['?stream=stdout&offset=2', 'b\nc\n'],
        ['?stream=stderr', 'd'],
        ['?offset=6', ''],
        ['?offset=999', ''],
      ]) {
        const answer = await ask('GET', path + query);
        expectAnswer(answer, 200);
        expect([answer.text, answer.headers['output-complete']]).toEqual([text, 'true']);
      }
      for (const query of ['stream=x', 'offset=-1', 'other=1'])
        expectError(await ask('GET', `${path}?${query}`), 400, { code: 'invalid_input' });
    },
    'host',
  ),
  row(
    at('GET /jobs/(id)/result: the bytes, where there are any'),
    'GET /jobs/{id}/result',
    async ({ ask, make }) => {
      const { vsid, path } = await make.video();
      const video = await ask('GET', `/jobs/${vsid}/result`);
      expectAnswer(video, 200, { type: 'video/mp4' });
      expect(video.bytes).toEqual((await make.call('GET', path)).bytes);
      const none = await ask('GET', `/jobs/${await make.command()}/result`);
      expectError(none, 404, { code: 'not_found' });
    },
    'host',
  ),
  row(
    at('DELETE /jobs/(id) cancels: 202; 409 when it has ended'),
    'DELETE /jobs/{id}, GET /jobs/{id}',
    async ({ ask, make, ended }) => {
      const { vsid } = await make.longVideo();
      expectAnswer(await ask('DELETE', `/jobs/${vsid}`), 202);
      const job = await ended(vsid);
      expect(job).toMatchObject({ state: 'cancelled', error: { code: 'cancelled' } });
      expectError(await ask('DELETE', `/jobs/${vsid}`), 409, { code: 'conflict' });
    },
    'host',
  ),
  row(
    at('POST /jobs/(id)/retry makes a new job, linked to the old, where the kind allows'),
    'POST /jobs/{id}/retry',
    async ({ ask, make, ended, world }) => {
      const json = { sid: await make.session(), command: 'true' };
      const { job } = (await make.call('POST', '/remotes/launch', { json })).json();
      const again = await ask('POST', `/jobs/${job}/retry`);
      expectAnswer(again, 202);
      const { id } = again.json();
      expect(id).not.toBe(job);
      expect(again.headers.location).toBe(`/api/jobs/${id}`);
      expect(await ended(String(id))).toMatchObject({ retryOf: job, state: 'succeeded' });
      const parsed = await make.parse(world.name('once'), 'x', 'blob');
      expectError(await ask('POST', `/jobs/${parsed.id}/retry`), 409, { code: 'conflict' });
    },
    'host',
  ),
  row(
    at('error is {code, detail, hint?}, the same words as in problem answers'),
    'GET /jobs/{id}',
    async ({ ask, make, ended }) => {
      const { vsid } = await make.newVideo({ images: ['/nowhere/frame'] });
      await ended(vsid);
      const { error } = (await ask('GET', `/jobs/${vsid}`)).json();
      expect(error).toMatchObject({
        code: 'bad_frames',
        detail: expect.stringMatching(/^Frames cannot be used/),
      });
    },
    'host',
  ),
];

function readEvents(text: string) {
  return text
    .split('\n\n')
    .filter(block => block.includes('data:'))
    .map(block => {
      const field = (name: string) => new RegExp(`^${name}: ?(.*)$`, 'm').exec(block)?.[1] ?? '';
      return { event: field('event'), id: field('id'), data: JSON.parse(field('data')) };
    });
}
