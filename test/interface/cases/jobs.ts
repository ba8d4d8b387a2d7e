import { expect } from 'vitest';
import { openStackDatabase } from '../../harness/databases/database.ts';
import { type Row, row } from '../row.ts';
import { expectAnswer, expectError } from '../tools.ts';
import type { World } from '../world.ts';

const at = (words: string) => `Jobs: ${words}`;

/** Operations of jobs, workers, settings and webhooks. */
export const JOB_ROWS: Row[] = [
  row(
    at('GET /jobs, GET /jobs/(id)'),
    'GET /jobs, GET /jobs/{id}',
    async ({ ask, make }) => {
      const id = await make.command();
      const job = (await ask('GET', `/jobs/${id}`)).json();
      const time = expect.stringMatching(/^\d{4}-.*Z$/);
      expect(job).toMatchObject({
        id,
        kind: 'command',
        state: 'succeeded',
        created: time,
        started: time,
        finished: time,
        result: { returncode: 0 },
        error: null,
      });
      expect(job).toHaveProperty('progress');
      const { items } = (await ask('GET', '/jobs?limit=1000')).json();
      expect(items).toContainEqual(job);
      const [newest] = (await ask('GET', '/jobs?limit=1')).json<{ items: unknown[] }>().items;
      expect(newest).toMatchObject({ id: expect.any(String), state: expect.any(String) });
    },
    'host',
  ),
  row(
    at(
      'GET /jobs/(id)/events: output, the end state, end; Last-Event-ID resumes, after the end 204',
    ),
    'GET /jobs/{id}/events',
    async ({ ask, make }) => {
      const id = await make.command();
      const whole = await ask('GET', `/jobs/${id}/events`);
      expectAnswer(whole, 200, { type: 'text/event-stream' });
      const events = readEvents(whole.text);
      expect(events.map(({ event }) => event).filter(event => event !== 'output')).toEqual([
        'progress',
        'state',
        'end',
      ]);
      const [state, end] = events.slice(-2);
      expect(state).toMatchObject({ event: 'state', data: { state: 'succeeded' } });
      expect(state?.data).not.toHaveProperty('error');
      expect(end).toMatchObject({ event: 'end', id: expect.stringMatching(/^6-1-end$/) });
      const after = { 'Last-Event-ID': String(end?.id) };
      expectAnswer(await ask('GET', `/jobs/${id}/events`, { headers: after }), 204);
      for (const { id } of outputsOf(events)) expect(id).toMatch(/^\d+-\d+$/);
      expect(joinOutput(events)).toEqual({ offset: 0, text: 'a\nb\nc\n' });
      const headers = { 'Last-Event-ID': '4-1' };
      const rest = readEvents((await ask('GET', `/jobs/${id}/events`, { headers })).text);
      expect(joinOutput(rest)).toEqual({ offset: 4, text: 'c\n' });
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
    at('a state event {state, error?}: of what failed, why'),
    'GET /jobs/{id}/events, GET /jobs/{id}',
    async ({ ask, make, ended }) => {
      const { vsid } = await make.newVideo({ images: ['/nowhere/frame'] });
      await ended(vsid);
      const { error } = (await ask('GET', `/jobs/${vsid}`)).json();
      const events = readEvents((await ask('GET', `/jobs/${vsid}/events`)).text);
      const told = events.find(({ event }) => event === 'state');
      expect(error).toMatchObject({ code: 'bad_frames', detail: expect.any(String) });
      expect(told).toMatchObject({ data: { state: 'failed', error } });
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
        data: { stream: 'stdout', offset: 0, time: expect.any(String), base64: '/w==' },
      });
    },
    'host',
  ),
  row(
    at('GET /jobs/(id)/output/times: offsets and times, one a second at most'),
    'GET /jobs/{id}/output/times',
    async ({ ask, make }) => {
      const answer = await ask('GET', `/jobs/${await make.command()}/output/times`);
      expect(answer.json()).toEqual([{ offset: 0, time: expect.any(String) }]);
      expectError(await ask('GET', '/jobs/none/output/times'), 404, { code: 'not_found' });
    },
    'host',
  ),
  row(
    at('GET /jobs/(id)/command: all of what it runs, and how'),
    'GET /jobs/{id}/command',
    async ({ ask, make }) => {
      const asked = {
        sid: await make.session(),
        command: 'cat\necho $WORD',
        cwd: '/tmp',
        timeout: 60,
      };
      const more = { env: { WORD: 'secret' }, stdin: 'é' };
      await ask('POST', '/remotes/launch', { json: { ...asked, ...more } });
      const { items } = (await ask('GET', '/jobs?kind=command&limit=1')).json() as {
        items: { id: string }[];
      };
      expect((await ask('GET', `/jobs/${items[0]?.id}/command`)).json()).toEqual({
        command: 'cat\necho $WORD',
        script: null,
        cwd: '/tmp',
        timeout: 60,
        env: ['WORD'],
        stdin: 2,
        batch: null,
      });
      expectError(await ask('GET', '/jobs/none/command'), 404, { code: 'not_found' });
    },
    'host',
  ),
  row(
    at('GET /jobs/(id)/history: its events, the oldest first'),
    'GET /jobs/{id}/history',
    async ({ ask, make }) => {
      const answer = await ask('GET', `/jobs/${await make.command()}/history`);
      const { items } = answer.json() as { items: { time: string; event: string }[] };
      expect(items.map(({ event }) => event)).toEqual(['queued', 'claimed', 'sent', 'ended']);
      expect(items[1]).toMatchObject({ worker: expect.any(String) });
      const times = items.map(({ time }) => time);
      expect(times).toEqual(times.toSorted());
      expectError(await ask('GET', '/jobs/none/history'), 404, { code: 'not_found' });
    },
    'host',
  ),
  row(
    at('GET /jobs/(id)/output?stream=&offset=&limit=: the bytes from there on; Output-Complete'),
    'GET /jobs/{id}/output',
    async ({ ask, make }) => {
      const path = `/jobs/${await make.command()}/output`;
      for (const [query, text] of [
        ['', 'a\nb\nc\n'],
        ['?stream=stdout&offset=2', 'b\nc\n'],
        ['?stream=stderr', 'd'],
        ['?offset=6', ''],
        ['?offset=999', ''],
        ['?offset=-2', 'c\n'],
      ]) {
        const answer = await ask('GET', path + query);
        expectAnswer(answer, 200);
        expect([answer.text, answer.headers['output-complete']]).toEqual([text, 'true']);
      }
      for (const query of ['stream=x', 'offset=--1', 'limit=0', 'other=1'])
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
      const { hint } = expectError(none, 404, { code: 'not_found' });
      expect(hint).toContain('shows its `result`');
    },
    'host',
  ),
  row(
    at('a result is there for 24 h after the job; a cache may take it over until then'),
    'GET /jobs/{id}/result, GET /remotes/{sid}/videos/{vsid}',
    async ({ ask, make, ended, world }) => {
      const { vsid, path } = await make.newVideo();
      expect(await ended(vsid)).toMatchObject({ state: 'succeeded' });
      const { pid } = await make.projectWithModel();
      const cached = `${path}?cache=project&project=${pid}&key=${world.name('late')}`;
      await agoIs(world, vsid, '23 hours 50 minutes');
      expectAnswer(await ask('GET', `/jobs/${vsid}/result`), 200, { type: 'video/mp4' });
      expectAnswer(await ask('GET', cached), 200, { type: 'video/mp4' });
      await agoIs(world, vsid, '24 hours 10 minutes');
      expectError(await ask('GET', `${cached}-not`), 404, { code: 'not_found' });
    },
    'host',
  ),
  row(
    at('DELETE /jobs/(id) cancels: 202; 409 when it has ended'),
    'DELETE /jobs/{id}, GET /jobs/{id}',
    async ({ ask, make, ended }) => {
      const { vsid } = await make.longVideo();
      const asked = await ask('DELETE', `/jobs/${vsid}`);
      expectAnswer(asked, 202, { json: { id: vsid } });
      expect(asked.headers.location).toBe(`/api/jobs/${vsid}`);
      const job = await ended(vsid);
      expect(job).toMatchObject({ state: 'cancelled', error: { code: 'cancelled' } });
      expectError(await ask('DELETE', `/jobs/${vsid}`), 409, { code: 'conflict' });
    },
    'host',
  ),
  row(
    at('DELETE /jobs/(id)/record: 204, and the job is gone; 409 while it runs'),
    'DELETE /jobs/{id}/record, GET /jobs/{id}, GET /jobs/{id}/output',
    async ({ ask, make, ended }) => {
      const json = { sid: await make.session(), command: 'echo gone; sleep 600' };
      const headers = { Prefer: 'respond-async' };
      const { id } = (await make.call('POST', '/remotes/launch', { json, headers })).json();
      expectError(await ask('DELETE', `/jobs/${id}/record`), 409, { code: 'conflict' });
      await make.call('DELETE', `/jobs/${id}`);
      await ended(String(id));
      expectAnswer(await ask('DELETE', `/jobs/${id}/record`), 204);
      for (const [method, path] of [
        ['DELETE', `/jobs/${id}/record`],
        ['GET', `/jobs/${id}`],
        ['GET', `/jobs/${id}/output`],
        ['GET', `/jobs/${id}/events`],
        ['POST', `/jobs/${id}/retry`],
      ] as const)
        expectError(await ask(method, path), 404, { code: 'not_found' });
    },
    'host',
  ),
  row(
    at('POST /jobs/(id)/retry makes a new job, linked to the old, where the kind allows'),
    'POST /jobs/{id}/retry',
    async ({ ask, make, ended, world }) => {
      const json = { sid: await make.session(), command: 'true' };
      const { job } = (await make.call('POST', '/remotes/launch', { json })).json();
      const again = await ask('POST', `/jobs/${job}/retry`, { json: { name: 'again' } });
      expectAnswer(again, 202);
      const { id } = again.json();
      expect(id).not.toBe(job);
      expect(again.headers.location).toBe(`/api/jobs/${id}`);
      expect(await ended(String(id))).toMatchObject({
        retryOf: job,
        state: 'succeeded',
        name: 'again',
      });
      const parsed = await make.parse(world.name('once'), 'x', 'blob');
      expectError(await ask('POST', `/jobs/${parsed.id}/retry`), 409, { code: 'conflict' });
    },
    'host',
  ),
  row(
    at('a record says what the job is; GET /jobs?state=&kind=&host=&name=&label=&since=&until='),
    'GET /jobs, POST /remotes/launch',
    async ({ ask, make, world }) => {
      const name = world.name('job');
      const json = { sid: await make.session(), command: `echo ${name}`, name };
      const { job } = (await ask('POST', '/remotes/launch', { json })).json();
      const found = `/jobs?state=succeeded&kind=command&name=${name}&label=${name}&since=2026-01-01T00:00:00Z`;
      const { items } = (await ask('GET', found)).json<{ items: unknown[] }>();
      expect(items).toMatchObject([{ id: job, name, label: `echo ${name}`, project: null }]);
      expect((await ask('GET', `${found}&until=2026-01-01T00:00:00Z`)).json().items).toEqual([]);
      expectError(await ask('GET', '/jobs?state=done'), 400, { code: 'invalid_input' });
    },
    'host',
  ),
  row(
    at('what reads on a host takes a name, too'),
    'POST /remotes/{sid}/browse/{path}, POST /hosts/-/scan, GET /jobs',
    async ({ ask, make, world }) => {
      const sid = await make.session();
      const name = world.name('reading');
      const folder = await make.folder();
      for (const headers of [undefined, { 'Idempotency-Key': world.name('listed') }])
        expectAnswer(
          await ask('POST', `/remotes/${sid}/browse${folder}`, { json: { name }, headers }),
          200,
        );
      const json = { address: world.sshd?.host, port: world.sshd?.port, private: true, name };
      expectAnswer(await ask('POST', '/hosts/-/scan', { json }), 200);
      const { items } = (await ask('GET', `/jobs?name=${name}`)).json<{
        items: { kind: string }[];
      }>();
      expect(items.map(({ kind }) => kind)).toEqual(['scan-host', 'browse', 'browse']);
    },
    'host',
  ),
  row(
    at('GET /workers, PUT /workers/(id) {draining}, for server administrators'),
    'GET /workers, PUT /workers/{id}',
    async ({ ask }) => {
      const workers = await ask('GET', '/workers');
      expectAnswer(workers, 200);
      const [worker] = workers.json<{ items: { id: string }[] }>().items;
      expect(worker).toMatchObject({ kinds: expect.arrayContaining(['command']), draining: false });
      expect(worker?.id).toMatch(/^[\w.-]+$/);
      const json = { draining: false };
      const answer = await ask('PUT', `/workers/${worker?.id}`, { json });
      expect(answer.json()).toMatchObject({ id: worker?.id, draining: false });
      expectError(await ask('PUT', '/workers/none', { json }), 404, { code: 'not_found' });
      expectError(await ask('PUT', '/workers/none', { json: {} }), 400, { code: 'invalid_input' });
    },
    'host',
  ),
  row(
    at('GET /settings, for server administrators: no secret'),
    'GET /settings',
    async ({ ask }) => {
      const { items } = (await ask('GET', '/settings')).json<{ items: { name: string }[] }>();
      const of = (wanted: string) => items.find(({ name }) => name === wanted);
      expect(of('SECRET_KEY')).toMatchObject({ value: null, from: 'environment', secret: true });
      expect(of('LIMIT_PROJECT_BYTES')).toMatchObject({
        secret: false,
        meaning: expect.any(String),
      });
    },
    'host',
  ),
  row(
    at(
      'GET /stats?since=&step=, for server administrators: waits, durations, failures and depth by kind over time',
    ),
    'GET /stats',
    async ({ ask }) => {
      const since = new Date(Date.now() - 3_600_000).toISOString();
      const answer = await ask('GET', `/stats?since=${since}&step=60`);
      expect(answer.json()).toEqual({ since, step: 60, items: expect.any(Array) });
      for (const wrong of ['step=59', 'step=1e3', 'since=yesterday', 'unknown=1'])
        expectError(await ask('GET', `/stats?${wrong}`), 400, { code: 'invalid_input' });
      const month = new Date(Date.now() - 40 * 86_400_000).toISOString();
      expectError(await ask('GET', `/stats?since=${month}&step=60`), 400, {
        code: 'invalid_input',
      });
    },
    'host',
  ),
  row(
    at('error is {code, detail, hint?}, the same words as in problem answers'),
    'GET /jobs/{id}, POST /remotes/launch',
    async ({ ask, make, ended, world }) => {
      const { vsid } = await make.newVideo({ images: ['/nowhere/frame'] });
      await ended(vsid);
      const { error } = (await ask('GET', `/jobs/${vsid}`)).json();
      const known = { code: 'bad_frames', detail: expect.stringMatching(/^Frames cannot be used/) };
      expect(error).toMatchObject(known);
      // The launch of a command is answered with the words of its job.
      const json = { sid: await make.session(), command: 'exec sleep 600' };
      const headers = { Prefer: 'respond-async', 'Idempotency-Key': world.name('words') };
      const { id } = (await ask('POST', '/remotes/launch', { json, headers })).json();
      await make.call('DELETE', `/jobs/${id}`);
      const { error: told } = await ended(String(id));
      const answer = await ask('POST', '/remotes/launch', { json, headers });
      const { code, detail, hint } = expectError(answer, 409, { code: 'cancelled' });
      expect({ code, detail, ...(hint && { hint }) }).toEqual(told);
    },
    'host',
  ),
  row(
    at('POST /webhooks 201 {id, secret}; GET, DELETE, deliveries'),
    'POST /webhooks, GET /webhooks, GET /webhooks/{id}, DELETE /webhooks/{id}, GET /webhooks/{id}/deliveries',
    async ({ ask, look }) => {
      const url = 'https://receiver.example/';
      const json = { url, kinds: ['file'], states: ['failed', 'cancelled'] };
      const made = await ask('POST', '/webhooks', { json });
      expectAnswer(made, 201);
      const { id, secret } = made.json<{ id: string; secret: string }>();
      expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
      expect(made.headers.location).toBe(`/api/webhooks/${id}`);
      const record = await ask('GET', `/webhooks/${id}`);
      expect(record.json()).toMatchObject({ id, ...json, failing: null, disabled: null });
      const { items } = (await look('GET', '/webhooks?limit=1000')).json();
      expect(items).toContainEqual(record.json());
      const sent = await ask('GET', `/webhooks/${id}/deliveries`);
      expect(sent.json()).toEqual({ items: [], next: null });
      for (const wrong of [{}, { url: 'x' }, { url, kinds: ['x'] }, { url, states: ['queued'] }])
        expectError(await ask('POST', '/webhooks', { json: wrong }), 400, {
          code: 'invalid_input',
        });
      expectAnswer(await ask('DELETE', `/webhooks/${id}`), 204);
      expectError(await ask('GET', `/webhooks/${id}`), 404, { code: 'not_found' });
    },
  ),
];

/** Makes the time since the end of a job `ago`, such as `2 hours`. */
async function agoIs({ stack }: World, job: string, ago: string): Promise<void> {
  const database = openStackDatabase(stack);
  try {
    await database`update jobs set finished = now() - ${ago}::interval where id = ${job}`;
  } finally {
    await database.end();
  }
}

function readEvents(text: string) {
  return text
    .split('\n\n')
    .filter(block => block.includes('data:'))
    .map(block => {
      const field = (name: string) => new RegExp(`^${name}: ?(.*)$`, 'm').exec(block)?.[1] ?? '';
      return { event: field('event'), id: field('id'), data: JSON.parse(field('data')) };
    });
}

type Event = ReturnType<typeof readEvents>[number];

const outputsOf = (events: Event[]) =>
  events.filter(({ event, data }) => event === 'output' && data.stream === 'stdout');

/** What the events say of stdout, in one piece: a slow host's output comes in several. */
function joinOutput(events: Event[]): { offset: number; text: string } {
  const outputs = outputsOf(events);
  const offset = outputs[0]?.data.offset;
  let text = '';
  for (const { data } of outputs) {
    expect(data.offset).toBe(offset + text.length);
    text += data.text;
  }
  return { offset, text };
}
