import { expect } from 'vitest';
import { type Row, row } from '../row.ts';
import type { Answer } from '../send.ts';
import { expectAnswer, expectError } from '../tools.ts';

const at = (words: string) => `Videos: ${words}`;
const VIDEO = 'GET /remotes/{sid}/videos/{vsid}';
const STATUS = `${VIDEO}/status`;
const START = 'POST /remotes/{sid}/videos';
const CACHED = '/projects/{pid}/cache/{key}';
const UNKNOWN = '00000000000000000000000000';

/** Videos: made, shown, and kept in a cache. */
export const VIDEOS: Row[] = [
  row(
    at('POST 202 {sid: vsid}, plus vsid and job'),
    `${START}, GET /jobs/{id}`,
    async ({ ask, make }) => {
      const json = { 'content-type': 'video/webm', images: await make.frames(), fps: 5, width: 32 };
      const answer = await ask('POST', `/remotes/${await make.session()}/videos`, { json });
      expectAnswer(answer, 202);
      const { sid, vsid, job } = answer.json();
      expect([vsid, typeof sid, typeof job]).toEqual([sid, 'string', 'string']);
      expect(sid).toMatch(/./);
      expectAnswer(await ask('GET', `/jobs/${job}`), 200);
    },
    'host',
  ),
  row(
    at('encode: "host" | "worker"; fps, width, quality'),
    START,
    async ({ ask, make, ended }) => {
      const path = `/remotes/${await make.session()}/videos`;
      const images = await make.frames();
      for (const encode of ['host', 'worker']) {
        const json = {
          'content-type': 'video/mp4',
          images,
          encode,
          fps: 120,
          width: 32,
          quality: 0.5,
        };
        const started = await ask('POST', path, { json });
        expectAnswer(started, 202);
        const job = await ended(String(started.json().job));
        expect(job).toMatchObject({ state: 'succeeded', result: { encoded: encode } });
      }
    },
    'host',
  ),
  row(
    at('DELETE of the session cancels it'),
    `${START}, DELETE /remotes/{sid}`,
    async ({ ask, make, ended }) => {
      const sid = await make.newSession();
      const [frame = ''] = await make.frames();
      const json = { 'content-type': 'video/mp4', images: Array(20_000).fill(frame) };
      const started = await ask('POST', `/remotes/${sid}/videos`, { json });
      expectAnswer(await ask('DELETE', `/remotes/${sid}`), 204, { reason: 'Session deleted.' });
      expect(await ended(String(started.json().job))).toMatchObject({ state: 'cancelled' });
    },
    'host',
  ),
  row(
    at('400 Missing content-type. / Missing images. / Agent required.; unsupported type 400'),
    START,
    async ({ ask, make }) => {
      const path = `/remotes/${await make.session()}/videos`;
      const type = { 'content-type': 'video/mp4' };
      for (const [json, title] of [
        [{ images: ['/f'] }, 'Missing content-type.'],
        [type, 'Missing images.'],
        [{ ...type, images: [] }, 'Missing images.'],
        [{ 'content-type': 'video/avi', images: ['/f'] }, 'Unsupported content-type.'],
        [{ ...type, images: ['relative'] }, 'Invalid parameters'],
        [{ ...type, images: ['/f'], fps: 121 }, 'Invalid parameters'],
        [{ ...type, images: ['/f'], other: 1 }, 'Invalid parameters'],
        [{ ...type, images: ['/f'], key: 'k' }, 'Must specify project id.'],
        [{ ...type, images: ['/f'], project: UNKNOWN }, 'Must specify cache key.'],
      ] as const)
        expectError(await ask('POST', path, { json }), 400, { title });
      const json = { ...type, images: ['/f'] };
      const plain = await ask('POST', `/remotes/${await make.session(false)}/videos`, { json });
      expectError(plain, 400, { title: 'Agent required.' });
    },
    'host',
  ),
  row(
    at('project and key: cached there when ready, whether or not anyone fetches it'),
    `${START}, GET ${CACHED}`,
    async ({ ask, make, world, ended }) => {
      const { pid } = await make.projectWithModel();
      const key = world.name('kept');
      const json = {
        'content-type': 'video/mp4',
        images: await make.frames(),
        project: pid,
        key,
      };
      const started = await ask('POST', `/remotes/${await make.session()}/videos`, { json });
      expect(await ended(String(started.json().vsid))).toMatchObject({ state: 'succeeded' });
      expectAnswer(await ask('GET', `/projects/${pid}/cache/${key}`), 200, { type: 'video/mp4' });
    },
    'host',
  ),
  row(
    at('status: ready false while working, progress 0…1; unknown vsid 404'),
    `${STATUS}, ${VIDEO}`,
    async ({ ask, make }) => {
      const { path, sid, vsid } = await make.longVideo();
      const { progress, ...status } = (await ask('GET', `${path}/status`)).json();
      await make.call('DELETE', `/jobs/${vsid}`);
      expect(status).toMatchObject({ ok: true, ready: false });
      expect(status.message).toMatch(new RegExp(`^${status.phase}`));
      expect(progress).toBeGreaterThanOrEqual(0);
      expect(progress).toBeLessThanOrEqual(1);
      for (const where of [`${UNKNOWN}/status`, UNKNOWN])
        expectError(await ask('GET', `/remotes/${sid}/videos/${where}`), 404, {
          code: 'not_found',
        });
    },
    'host',
  ),
  row(
    'Videos: poster (JPEG), sprite (JPEG) and sprite.vtt, 404 before the video is ready',
    `${VIDEO}/poster, ${VIDEO}/sprite, ${VIDEO}/sprite.vtt`,
    async ({ ask, make }) => {
      const early = await make.longVideo();
      const stills = ['poster', 'sprite', 'sprite.vtt'];
      const before = await Promise.all(stills.map(each => ask('GET', `${early.path}/${each}`)));
      await make.call('DELETE', `/jobs/${early.vsid}`);
      for (const answer of before) expectError(answer, 404, { code: 'not_found' });
      const { path } = await make.video();
      for (const [i, type] of ['image/jpeg', 'image/jpeg', 'text/vtt'].entries()) {
        const answer = await ask('GET', `${path}/${stills[i]}`);
        expectAnswer(answer, 200);
        expect(answer.headers['content-type']).toContain(type);
      }
      expect((await ask('GET', `${path}/sprite.vtt`)).text).toMatch(
        /^WEBVTT\n\n00:00:00.000 --> \S+\nsprite#xywh=0,0,/,
      );
    },
    'host',
  ),
  row(
    at('retrieval before it is ready 409 with Retry-After; after failure 409 with the message'),
    VIDEO,
    async ({ ask, make, ended }) => {
      const { path, vsid } = await make.longVideo();
      const early = await ask('GET', path);
      await make.call('DELETE', `/jobs/${vsid}`);
      expectError(early, 409, { code: 'video_not_ready' });
      expect(early.headers['retry-after']).toMatch(/^\d+$/);
      const failed = await make.newVideo({ images: ['/nowhere/frame'] });
      await ended(failed.vsid);
      const { message } = (await ask('GET', `${failed.path}/status`)).json();
      expect(message).toContain('/nowhere/frame');
      const { detail } = expectError(await ask('GET', failed.path), 409, { code: 'conflict' });
      expect(detail).toContain(message);
    },
    'host',
  ),
  row(
    at('Accept-Ranges, one range per answer, 416 with Content-Range, ETag, If-Range, HEAD'),
    VIDEO,
    async ({ ask, make }) => {
      const { path } = await make.video();
      const whole = await ask('GET', path);
      const { length } = whole.bytes;
      const tag = whole.headers.etag ?? '';
      expect([whole.headers['accept-ranges'], tag]).toEqual(['bytes', expect.stringMatching(/^"/)]);
      const get = (headers: Record<string, string>) => ask('GET', path, { headers });
      const expectWhole = (answer: Answer) => {
        expectAnswer(answer, 200, { type: 'video/mp4' });
        expect(answer.bytes).toEqual(whole.bytes);
      };
      const end = await get({ Range: 'bytes=-5' });
      expectAnswer(end, 206, { type: 'video/mp4' });
      expect(end.bytes).toEqual(whole.bytes.subarray(-5));
      expect(end.headers['content-range']).toBe(`bytes ${length - 5}-${length - 1}/${length}`);
      for (const Range of ['bytes=0-1,3-4', 'bytes=5-2', 'lines=1-2', 'bytes=x'])
        expectWhole(await get({ Range }));
      const past = await get({ Range: `bytes=${length}-` });
      expectError(past, 416, { code: 'range_not_satisfiable' });
      expect(past.headers['content-range']).toBe(`bytes */${length}`);
      expectAnswer(await get({ Range: 'bytes=0-0', 'If-Range': tag }), 206);
      expectWhole(await get({ Range: 'bytes=0-0', 'If-Range': '"other"' }));
      expectAnswer(await get({ 'If-None-Match': tag }), 304);
      const head = await ask('HEAD', path);
      expect([head.status, head.bytes.length]).toEqual([200, 0]);
      expect(head.headers).toMatchObject({
        'content-length': String(length),
        'content-type': 'video/mp4',
        etag: tag,
      });
    },
    'host',
  ),
  row(
    at('400 Unknown cache type: x., Must specify project id., Must specify cache key.'),
    VIDEO,
    async ({ ask, make }) => {
      const { path } = await make.video();
      for (const [query, code, words] of [
        ['cache=x', 'unknown_cache_type', 'Unknown cache type: x.'],
        ['cache=project', 'missing_project', 'Must specify project id.'],
        ['cache=project&project=p', 'missing_cache_key', 'Must specify cache key.'],
      ] as const) {
        const refused = expectError(await ask('GET', `${path}?${query}`), 400, { code });
        expect(refused.detail).toBe(words);
      }
    },
    'host',
  ),
  row(
    at('cache=project needs write access'),
    `${VIDEO}, ${START}`,
    async ({ ask, make, world }) => {
      const { path } = await make.video();
      const as = await make.person('stranger');
      const json = { name: world.name('foreign') };
      const { id } = (await make.call('POST', '/projects', { as, json })).json();
      const get = () => ask('GET', `${path}?cache=project&project=${id}&key=k`);
      expectError(await get(), 404, { code: 'not_found' });
      const acl = { readers: [{ user: world.user.username }] };
      await make.call('PUT', `/projects/${id}`, { as, json: { acl } });
      expectError(await get(), 403, { code: 'forbidden' });
      const video = { 'content-type': 'video/mp4', images: ['/f'], project: id, key: 'k' };
      const started = await ask('POST', `/remotes/${await make.session()}/videos`, { json: video });
      expectError(started, 403, { code: 'forbidden' });
      await make.call('DELETE', `/projects/${id}`, { as });
    },
    'host',
  ),
  row(
    at('the same video under the same key changes nothing, another one replaces it'),
    `${VIDEO}, GET ${CACHED}`,
    async ({ ask, make, world }) => {
      const pid = (await make.projectWithModel()).pid;
      const key = world.name('same');
      const [first, second] = [await make.video('video/mp4'), await make.video('video/webm')];
      const cached = `/projects/${pid}/cache/${key}`;
      const cache = (path: string) => ask('GET', `${path}?cache=project&project=${pid}&key=${key}`);
      await cache(first.path);
      const tag = (await ask('GET', cached)).headers.etag;
      const list = `/projects/${pid}/cache?limit=1000`;
      const before = (await make.call('GET', list)).json();
      expectAnswer(await cache(first.path), 200);
      expect((await ask('GET', cached)).headers.etag).toBe(tag);
      expect((await make.call('GET', list)).json()).toEqual(before);
      await cache(second.path);
      const replaced = await ask('GET', cached);
      expectAnswer(replaced, 200, { type: 'video/webm' });
      expect(replaced.headers.etag).not.toBe(tag);
    },
    'host',
  ),
  row(
    at('HEAD never caches'),
    `${VIDEO}, GET ${CACHED}`,
    async ({ ask, make, world }) => {
      const { pid } = await make.projectWithModel();
      const { path } = await make.video();
      const key = world.name('head');
      const head = await ask('HEAD', `${path}?cache=project&project=${pid}&key=${key}`);
      expectAnswer(head, 200, { type: 'video/mp4' });
      expectError(await ask('GET', `/projects/${pid}/cache/${key}`), 404, { code: 'not_found' });
    },
    'host',
  ),
  row(
    at(
      'GET | HEAD | DELETE /projects/(pid)/cache/(key); escaped slashes, ranges; 204 Cache object deleted.',
    ),
    `GET ${CACHED}, DELETE ${CACHED}`,
    async ({ ask, make, world }) => {
      const { pid } = await make.projectWithModel();
      const { path } = await make.video();
      const key = encodeURIComponent(`a/b c/${world.name('ü')}`);
      await make.call('GET', `${path}?cache=project&project=${pid}&key=${key}`);
      const cached = `/projects/${pid}/cache/${key}`;
      for (const where of [cached, cached.replaceAll('%2F', '/')]) {
        const whole = await ask('GET', where);
        expectAnswer(whole, 200, { type: 'video/mp4' });
        const part = await ask('GET', where, { headers: { Range: 'bytes=1-3' } });
        expectAnswer(part, 206, { type: 'video/mp4' });
        expect(part.bytes).toEqual(whole.bytes.subarray(1, 4));
        const head = await ask('HEAD', where);
        expectAnswer(head, 200, { type: 'video/mp4' });
        expect(head.headers['content-length']).toBe(String(whole.bytes.length));
      }
      expectAnswer(await ask('DELETE', cached), 204, { reason: 'Cache object deleted.' });
      for (const method of ['GET', 'DELETE'])
        expectError(await ask(method, cached), 404, { code: 'not_found' });
    },
    'host',
  ),
];
