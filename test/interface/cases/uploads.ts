import { createHash } from 'node:crypto';
import { expect } from 'vitest';
import { type Row, row } from '../row.ts';
import type { Options } from '../send.ts';
import { expectAnswer, expectError } from '../tools.ts';

const at = (words: string) => `Uploads: ${words}`;
const PART = 'PUT /uploads/{uid}/files/{fid}/parts/{part}';
const UPLOAD = 'GET /uploads/{uid}';
const FINISHED = 'POST /uploads/{uid}/finished';
const BYTES = { 'Content-Type': 'application/octet-stream' };
const UNKNOWN = '00000000000000000000000000';
const sha256 = (text: string) => createHash('sha256').update(text).digest('base64');
const bytes = (body: string, more: Record<string, string> = {}): Options => ({
  body,
  headers: { ...BYTES, ...more },
});

/** Uploads by parts, to their end. */
export const UPLOADS: Row[] = [
  row(
    at('POST /uploads 201 {id} and Location'),
    'POST /uploads, GET /uploads',
    async ({ ask, make, world }) => {
      const { mid } = await make.projectWithModel();
      const json = { mid, input: true, parser: 'csv', aids: [world.name('a')], header: true };
      const made = await ask('POST', '/uploads', { json });
      expectAnswer(made, 201, { json: { id: expect.any(String) } });
      expect(made.headers.location).toBe(`/api/uploads/${made.json().id}`);
      const listed = await ask('GET', '/uploads?limit=1000');
      expect(listed.json().items).toContainEqual(expect.objectContaining(made.json()));
    },
  ),
  row(
    at('400 unknown parser, missing field; 404 by the model'),
    'POST /uploads',
    async ({ ask, make }) => {
      const good = {
        mid: (await make.projectWithModel()).mid,
        input: true,
        parser: 'blob',
        aids: ['a'],
      };
      for (const [field, json] of [
        ['parser', { ...good, parser: 'none' }],
        ['mid', { ...good, mid: undefined }],
        ['input', { ...good, input: undefined }],
        ['aids', { ...good, aids: undefined }],
        ['aids', { ...good, aids: [] }],
        ['other', { ...good, other: 1 }],
      ] as const) {
        const refused = expectError(await ask('POST', '/uploads', { json }), 400, {
          code: 'invalid_input',
        });
        expect(refused.fields?.map(one => one.field)).toContain(field);
      }
      const unknown = await ask('POST', '/uploads', { json: { ...good, mid: UNKNOWN } });
      expectError(unknown, 404, { code: 'not_found' });
    },
  ),
  row(
    at('a part: 200, empty; fid and pid are zero-based integers'),
    `${PART}, ${UPLOAD}`,
    async ({ ask, make }) => {
      const uid = await make.newUpload();
      const stored = await ask('PUT', `/uploads/${uid}/files/0/parts/0`, bytes('part'));
      expectAnswer(stored, 200);
      expect(stored.bytes).toHaveLength(0);
      const { parts } = (await ask('GET', `/uploads/${uid}`)).json();
      expect(parts).toEqual([{ fid: 0, pid: 0, size: 4, digest: sha256('part') }]);
      for (const where of ['-1/parts/0', '0/parts/x', '0/parts/1.5', '00/parts/0'])
        expectError(await ask('PUT', `/uploads/${uid}/files/${where}`, bytes('x')), 400, {
          code: 'invalid_input',
        });
    },
  ),
  row(
    at('a part as multipart/form-data with file'),
    `${PART}, ${UPLOAD}`,
    async ({ ask, make }) => {
      const uid = await make.newUpload();
      const body =
        '--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nbytes\r\n--b--\r\n';
      const headers = { 'Content-Type': 'multipart/form-data; boundary=b' };
      const path = `/uploads/${uid}/files/0/parts/0`;
      expectAnswer(await ask('PUT', path, { body, headers }), 200);
      expect((await ask('GET', `/uploads/${uid}`)).json().parts).toEqual([
        { fid: 0, pid: 0, size: 5, digest: sha256('bytes') },
      ]);
    },
  ),
  row(
    at('a form or JSON with sid and path: the server copies that file (202, a job)'),
    `${PART}, ${UPLOAD}`,
    async ({ ask, make, ended }) => {
      const sid = await make.session();
      const path = `${await make.folder()}/copied`;
      await make.run(`printf remote > ${path}`);
      const form = {
        body: new URLSearchParams({ sid, path }).toString(),
        headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      };
      const uid = await make.newUpload();
      for (const [n, options] of [{ json: { sid, path } }, form].entries()) {
        const started = await ask('PUT', `/uploads/${uid}/files/0/parts/${n}`, options);
        expectAnswer(started, 202);
        expect(started.headers.location).toBe(`/api/jobs/${started.json().id}`);
        expect(await ended(String(started.json().id))).toMatchObject({ state: 'succeeded' });
      }
      const digest = sha256('remote');
      expect((await ask('GET', `/uploads/${uid}`)).json().parts).toEqual([
        { fid: 0, pid: 0, size: 6, digest },
        { fid: 0, pid: 1, size: 6, digest },
      ]);
    },
    'host',
  ),
  row(
    at('423 on finished while a copy runs'),
    FINISHED,
    async ({ ask, make }) => {
      const sid = await make.session();
      const path = `${await make.folder()}/endless`;
      // A copy reads what is there: of a file that is sparse and large it takes its time.
      await make.run(`truncate -s 4G ${path}`);
      const uid = await make.newUpload();
      const copy = await make.call('PUT', `/uploads/${uid}/files/0/parts/0`, {
        json: { sid, path },
      });
      const json = { uploaded: [1] };
      const locked = await ask('POST', `/uploads/${uid}/finished`, { json });
      await make.call('DELETE', `/jobs/${copy.json().id}`);
      expectError(locked, 423, { code: 'locked' });
    },
    'host',
  ),
  row(
    at('Content-Digest is verified: 400 when it differs, and the part is not kept'),
    `${PART}, ${UPLOAD}`,
    async ({ ask, make }) => {
      const uid = await make.newUpload();
      const path = `/uploads/${uid}/files/0/parts/0`;
      const digest = (of: string) => ({ 'Content-Digest': `sha-256=:${sha256(of)}:` });
      expectError(await ask('PUT', path, bytes('part', digest('other'))), 400, {
        code: 'digest_mismatch',
      });
      expect((await ask('GET', `/uploads/${uid}`)).json().parts).toEqual([]);
      expectAnswer(await ask('PUT', path, bytes('part', digest('part'))), 200);
    },
  ),
  row(at('the same part again replaces it'), `${PART}, ${UPLOAD}`, async ({ ask, make }) => {
    const uid = await make.newUpload();
    for (const body of ['first', 'second one'])
      expectAnswer(await ask('PUT', `/uploads/${uid}/files/0/parts/0`, bytes(body)), 200);
    expect((await ask('GET', `/uploads/${uid}`)).json().parts).toEqual([
      { fid: 0, pid: 0, size: 10, digest: sha256('second one') },
    ]);
  }),
  row(at('409 after finished'), `${PART}, ${FINISHED}`, async ({ ask, make, world }) => {
    const { uid } = await make.parse(world.name('late'), 'x', 'blob');
    for (const pid of [0, 1]) {
      const part = await ask('PUT', `/uploads/${uid}/files/0/parts/${pid}`, bytes('x'));
      expectError(part, 409, { code: 'conflict' });
    }
    const again = await ask('POST', `/uploads/${uid}/finished`, { json: { uploaded: [1] } });
    expectError(again, 409, { code: 'conflict' });
  }),
  row(
    at('GET /uploads/(uid): state, parts, job; error names file, row, column, reason'),
    UPLOAD,
    async ({ ask, make, world }) => {
      const uid = await make.newUpload([world.name('seen')], 'csv');
      const open = (await ask('GET', `/uploads/${uid}`)).json();
      const { mid } = await make.projectWithModel();
      expect(open).toMatchObject({ id: uid, mid, parser: 'csv', state: 'open', parts: [] });
      for (const later of ['job', 'error']) expect(open).not.toHaveProperty(later);
      const good = await make.parse(world.name('good'), 'a\n1\n', 'csv');
      const done = (await ask('GET', `/uploads/${good.uid}`)).json();
      expect(done).toMatchObject({ state: 'done', job: good.id });
      expect(done).not.toHaveProperty('error');
      const reason = expect.stringMatching(/./);
      for (const [text, error] of [
        // A value that the type which was asked for its column does not hold.
        [`a,b\n${'1,2\n'.repeat(60_000)}1,x\n`, { file: 0, row: 60_002, column: 'b', reason }],
        // A row that is too long is wrong in no column. The first line of the file is row 1.
        ['a,b\n1,2\n3,4,5,6\n', { file: 0, row: 3, reason }],
      ] as const) {
        const what = `bad table of ${text.length}`;
        const types = { b: 'integer' };
        const bad = await make.once(what, () =>
          make.parse(world.name('bad'), text, 'csv', { types }),
        );
        const failed = (await ask('GET', `/uploads/${bad.uid}`)).json();
        expect(failed).toMatchObject({ state: 'failed', job: bad.id });
        expect(failed.error).toEqual({ message: reason, errors: [error] });
      }
    },
  ),
  row(
    at('aids name the artifacts, one a file; a number that differs: the parse fails and says so'),
    `${FINISHED}, ${UPLOAD}`,
    async ({ ask, make, ended, world }) => {
      const uid = await make.newUpload([world.name('one'), world.name('two')]);
      await make.putPart(uid, [0, 0], 'x');
      const accepted = await ask('POST', `/uploads/${uid}/finished`, { json: { uploaded: [1] } });
      expectAnswer(accepted, 202);
      const job = await ended(String(accepted.json().job));
      expect(job).toMatchObject({ state: 'failed', error: { code: 'parse_failed' } });
      const { state, error } = (await ask('GET', `/uploads/${uid}`)).json();
      // It says how many there are of each.
      const message = expect.stringMatching(/1 file and 2 artifact names/);
      expect([state, error]).toEqual(['failed', { message, errors: [] }]);
    },
  ),
  row(
    at('parsers: blob and csv, listed with their parameters'),
    'GET /configuration/parsers, GET /models/{mid}/files/{aid}, GET /models/{mid}/tables/{aid}/metadata',
    async ({ ask, make }) => {
      const listed = await ask('GET', '/configuration/parsers');
      const { items } = listed.json<{
        items: { name: string; makes: string; parameters: { properties: object } }[];
      }>();
      const makes = Object.fromEntries(items.map(one => [one.name, one.makes]));
      expect(makes).toMatchObject({ blob: 'file', csv: 'table' });
      for (const { parameters } of items)
        expect(parameters).toMatchObject({ type: 'object', properties: expect.anything() });
      const csv = items.find(({ name }) => name === 'csv');
      expect(csv?.parameters.properties).toHaveProperty('header');
      expectAnswer(await ask('GET', await make.file()), 200);
      expectAnswer(await ask('GET', `${await make.table()}/metadata`), 200);
    },
  ),
  row(
    at('finished: positive integers, at least one file, else 400'),
    FINISHED,
    async ({ ask, make }) => {
      const uid = await make.newUpload();
      for (const uploaded of [undefined, [], [0], [-1], [1.5], ['1'], 1])
        expectError(await ask('POST', `/uploads/${uid}/finished`, { json: { uploaded } }), 400, {
          code: 'invalid_input',
        });
    },
  ),
  row(
    at('Client confused {excess}; both at once: Upload incomplete, with both lists'),
    FINISHED,
    async ({ ask, make }) => {
      const uid = await make.newUpload(['a', 'b']);
      await make.putPart(uid, [0, 1], 'x');
      const finish = (uploaded: number[]) =>
        ask('POST', `/uploads/${uid}/finished`, { json: { uploaded } });
      const both = await finish([1]);
      expectError(both, 400, { title: 'Upload incomplete', reason: 'Upload incomplete' });
      expect(both.json()).toMatchObject({ missing: [[0, 0]], excess: [[0, 1]] });
      await make.putPart(uid, [0, 0], 'x');
      const confused = await finish([1]);
      expectError(confused, 400, { title: 'Client confused', reason: 'Client confused' });
      expect([confused.type, confused.json().excess]).toEqual(['application/json', [[0, 1]]]);
    },
  ),
  row(
    at('DELETE is 409 while parsing'),
    'DELETE /uploads/{uid}',
    async ({ ask, make, ended, world }) => {
      const uid = await make.newUpload([world.name('long')], 'csv');
      await make.putPart(uid, [0, 0], `a,b\n${'12345,some text\n'.repeat(500_000)}`);
      const json = { uploaded: [1] };
      const { job } = (await make.call('POST', `/uploads/${uid}/finished`, { json })).json();
      const refused = await ask('DELETE', `/uploads/${uid}`);
      await make.call('DELETE', `/jobs/${job}`);
      expectError(refused, 409, { code: 'conflict' });
      await ended(String(job));
      expectAnswer(await ask('DELETE', `/uploads/${uid}`), 204, {
        reason: 'Upload session deleted.',
      });
    },
  ),
  row(at('DELETE 204 Upload session deleted.'), 'DELETE /uploads/{uid}', async ({ ask, make }) => {
    const uid = await make.newUpload();
    expectAnswer(await ask('DELETE', `/uploads/${uid}`), 204, {
      reason: 'Upload session deleted.',
    });
    expectError(await ask('DELETE', `/uploads/${uid}`), 404, { code: 'not_found' });
  }),
];
