import { expect } from 'vitest';
import { openStackDatabase } from '../../harness/databases/database.ts';
import { type Row, row } from '../row.ts';
import { type Answer, type Options, send } from '../send.ts';
import { expectAnswer, expectError, type Tools } from '../tools.ts';

const at = (words: string) => `Everywhere: Idempotency-Key on ${words}`;

interface Repeated {
  method: string;
  path: string;
  json?: object;
  other?: object;
  /** The answer is the job's record: the second one comes after its end, so that it has a result under both prefixes. */
  isJob?: boolean;
}

/** Sends the same request twice, and another one, all under one key. */
async function repeat(
  { ask, world, ended }: Tools,
  { method, path, json, other, isJob }: Repeated,
): Promise<[Answer, Answer]> {
  const headers = { 'Idempotency-Key': world.name('once') };
  const send = (body: object | undefined): Promise<Answer> => {
    const options: Options = { headers, json: body };
    return ask(method, path, options);
  };
  const first = await send(json);
  if (isJob) await ended(String(first.json().id));
  const answers: [Answer, Answer] = [first, await send(json)];
  expect(answers.map(({ status }) => status)).toEqual([answers[0].status, answers[0].status]);
  expect([answers[0].status, answers[0].text]).toEqual([
    expect.toSatisfy((status: number) => status < 300),
    expect.any(String),
  ]);
  if (other) expectError(await send(other), 409, { code: 'idempotency_conflict' });
  return answers;
}

/** Idempotency-Key is honoured on every POST that starts work. */
export const IDEMPOTENCY: Row[] = [
  row(
    at('POST /remotes: one session'),
    'POST /remotes',
    async tools => {
      const { make, world } = tools;
      const json = { ...world.host, agent: false };
      const [first, second] = await repeat(tools, {
        method: 'POST',
        path: '/remotes',
        json,
        other: { ...json, agent: true },
      });
      expect(second.json()).toEqual(first.json());
      await make.call('DELETE', `/remotes/${first.json().sid}`);
    },
    'host',
  ),
  row(
    at('POST /remotes/(sid)/videos: one video'),
    'POST /remotes/{sid}/videos',
    async tools => {
      const path = `/remotes/${await tools.make.session()}/videos`;
      const json = { 'content-type': 'video/mp4', images: await tools.make.frames() };
      const other = { ...json, fps: 7 };
      const [first, second] = await repeat(tools, { method: 'POST', path, json, other });
      expect(second.json()).toEqual(first.json());
    },
    'host',
  ),
  row(
    at('POST /remotes/(sid)/browse/(path): one listing, even of what has changed since'),
    'POST /remotes/{sid}/browse/{path}',
    async tools => {
      const { make, world } = tools;
      const folder = `${await make.folder()}/${world.name('listed')}`;
      await make.run(`mkdir ${folder}; touch ${folder}/before`);
      const headers = { 'Idempotency-Key': world.name('once') };
      const path = `/remotes/${await make.session()}/browse${folder}`;
      const list = async () => (await tools.ask('POST', path, { headers })).json().names;
      expect(await list()).toEqual(['before']);
      await make.run(`touch ${folder}/since`);
      expect(await list()).toEqual(['before']);
    },
    'host',
  ),
  row(
    at('POST /jobs/(id)/retry: one new job'),
    'POST /jobs/{id}/retry',
    async tools => {
      const path = `/jobs/${await tools.make.command()}/retry`;
      const [first, second] = await repeat(tools, { method: 'POST', path, isJob: true });
      expect(second.json().id).toBe(first.json().id);
    },
    'host',
  ),
  row(
    at('POST /hosts with trust: "now": one host, one look at its keys'),
    'POST /hosts, GET /hosts/{name}',
    async tools => {
      const { ask, make, world } = tools;
      const name = world.name('trusted-once');
      const { host: address, port } = world.sshd ?? {};
      const json = { name, address, port, trust: 'now', private: true };
      const [first, second] = await repeat(tools, { method: 'POST', path: '/hosts', json });
      expect([first.status, second.status]).toEqual([201, 201]);
      expect(second.json()).toEqual(first.json());
      expect(second.headers.location).toBe(first.headers.location);
      // Under another key, or none, it is a second host of that name.
      const headers = { 'Idempotency-Key': world.name('other') };
      expectError(await ask('POST', '/hosts', { json, headers }), 409, { code: 'conflict' });
      expect((await ask('GET', `/hosts/${name}`)).json()).toEqual(first.json());
      await make.call('DELETE', `/hosts/${name}`);
    },
    'host',
  ),
  row(
    at('POST /uploads/(uid)/finished: the same again gives the same job, with another body 409'),
    'POST /uploads/{uid}/finished',
    async ({ ask, make, world }) => {
      const uid = await make.newUpload();
      await make.putPart(uid, [0, 0], 'x');
      const headers = { 'Idempotency-Key': world.name('key') };
      const finish = (n: number) =>
        ask('POST', `/uploads/${uid}/finished`, { headers, json: { uploaded: [n] } });
      const first = await finish(1);
      expectAnswer(first, 202);
      expectAnswer(await finish(1), 202, { json: first.json() });
      expectError(await finish(2), 409, { code: 'idempotency_conflict' });
    },
  ),
  row(
    at('a part that is copied from a host: one copy'),
    'PUT /uploads/{uid}/files/{fid}/parts/{part}',
    async tools => {
      const { make, ended } = tools;
      const sid = await make.session();
      const file = `${await make.folder()}/copied-once`;
      await make.run(`printf once > ${file}`);
      const path = `/uploads/${await make.newUpload()}/files/0/parts/0`;
      const json = { sid, path: file };
      const other = { sid, path: `${file}-not` };
      const [first, second] = await repeat(tools, {
        method: 'PUT',
        path,
        json,
        other,
        isJob: true,
      });
      expect(second.json().id).toBe(first.json().id);
      expect(await ended(String(first.json().id))).toMatchObject({ state: 'succeeded' });
    },
    'host',
  ),
  row(
    at('a route and of a user: elsewhere the same key means another request'),
    'POST /projects/{pid}/models, POST /uploads/{uid}/finished',
    async ({ ask, make, world, ended }) => {
      const key = world.name('shared');
      const headers = { 'Idempotency-Key': key };
      const finish = async (as?: Awaited<ReturnType<typeof make.newUser>>) => {
        const project = { name: world.name('p') };
        const made = await make.call('POST', '/projects', { as, json: project });
        const model = { 'model-type': 'any', name: 'm' };
        const { id: mid } = (
          await ask('POST', `/projects/${made.json().id}/models`, { as, json: model })
        ).json();
        const upload = { mid, input: true, parser: 'blob', aids: ['a'] };
        const { id: uid } = (await make.call('POST', '/uploads', { as, json: upload })).json();
        const type = { 'Content-Type': 'application/octet-stream' };
        const part = `/uploads/${uid}/files/0/parts/0`;
        await make.call('PUT', part, { as, headers: type, body: 'x' });
        const json = { uploaded: [1] };
        const done = await ask('POST', `/uploads/${uid}/finished`, { as, headers, json });
        expect([done.status, done.json().missing]).toEqual([202, []]);
        return String(done.json().job);
      };
      const mine = [await finish(), await finish()];
      const theirs = await finish(await make.newUser());
      expect(new Set([...mine, theirs]).size).toBe(3);
      for (const job of mine) expect(await ended(job)).toMatchObject({ state: 'succeeded' });
    },
  ),
  row(
    at('every POST that starts work: for 24 h'),
    'POST /remotes/launch',
    async tools => {
      const { ask, make, world } = tools;
      const headers = { 'Idempotency-Key': world.name('kept') };
      const json = { sid: await make.session(), command: 'true' };
      const launch = async () =>
        (await ask('POST', '/remotes/launch', { json, headers })).json().job;
      const first = await launch();
      expect(first).toEqual(expect.stringMatching(/./));
      const database = openStackDatabase(world.stack);
      const key = headers['Idempotency-Key'];
      try {
        for (const [ago, isKept] of [
          ['23 hours 50 minutes', true],
          ['24 hours 10 minutes', false],
        ] as const) {
          await database`update idempotency_keys set created = now() - ${ago}::interval
            where key = ${key}`;
          expect((await launch()) === first).toBe(isKept);
        }
      } finally {
        await database.end();
      }
    },
    'host',
  ),
  row(
    at('an address, however it is spelled: in other case, escaped, with a slash at its end'),
    'POST /remotes/launch, POST /remotes/{sid}/browse/{path}',
    async ({ ask, make, world }) => {
      const sid = await make.session();
      const json = { sid, command: 'true' };
      const folder = await make.folder();
      const listing = `/remotes/${sid}/browse${folder}`;
      const escaped = `/Remotes/${sid}/browse${folder.replace('t', '%74')}`;
      for (const [usual, others, body] of [
        ['/remotes/launch', ['/remotes/launch/', '/Remotes/LAUNCH', '/API/remotes/launch'], json],
        [listing, [`/api${listing}`, escaped], undefined],
      ] as const) {
        const headers = { 'Idempotency-Key': world.name('spelled') };
        expectAnswer(await ask('POST', usual, { headers, json: body }), 200);
        for (const target of others) {
          const request = { as: world.user, method: 'POST', target, headers, json: body };
          expectAnswer(await send(world.url, request), 200);
        }
        const database = openStackDatabase(world.stack);
        try {
          const key = headers['Idempotency-Key'];
          const rows = await database`select route from idempotency_keys where key = ${key}`;
          // As the releases before this one stored it.
          expect(rows.map(({ route }) => route)).toEqual([`POST ${usual}`]);
        } finally {
          await database.end();
        }
      }
    },
    'host',
  ),
  row(at('what is no key: 400'), 'POST /remotes/launch', async ({ ask }) => {
    const json = { sid: '0', command: 'true' };
    for (const key of ['a b', 'x'.repeat(256)]) {
      const headers = { 'Idempotency-Key': key };
      const refused = await ask('POST', '/remotes/launch', { json, headers });
      const { fields } = expectError(refused, 400, { code: 'invalid_input' });
      expect(fields?.map(({ field }) => field)).toEqual(['Idempotency-Key']);
    }
  }),
];
