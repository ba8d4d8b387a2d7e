import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeArray, makeTable, parse, utf8 } from '../../harness/clients/tables.ts';
import { TusClient, tusMetadata } from '../../harness/clients/tus.ts';
import { beginUpload, partPath, putPart, someBytes } from '../../harness/clients/uploads.ts';
import { launchAsync, openSession, waitForEnd } from '../../harness/hosts/remote.ts';
import type { Actor } from './expected.ts';
import {
  cacheVideo,
  makeBookmark,
  makeModel,
  makeProject,
  makeToken,
  putParameter,
  type World,
} from './world.ts';

/** What is sent beside the method: `ids` fill the path's parameters, those of the world where none are given. */
export interface Sent {
  ids?: Record<string, string>;
  query?: Record<string, string>;
  json?: unknown;
  bytes?: Uint8Array;
  headers?: Record<string, string>;
}

type Make = (world: World, actor: Actor) => Sent | Promise<Sent>;

/** In the shape of a host's key; nothing connects to these hosts. */
const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJvXs2hBOkRmY2OJXHYnbDTNFRJtbUGzvQhFQxGvCnUE';
const PASSWORD = 'a long password';

let made = 0;
const newName = (what: string) => `${what}-${++made}`;

/** A user nobody else knows. */
async function makeUser({ people }: World): Promise<string> {
  const username = newName('user');
  await people.server.post('/api/users', { username, password: PASSWORD });
  return username;
}

async function makeHost({ people }: World): Promise<string> {
  const name = newName('host');
  await people.server.post('/api/hosts', { name, keys: [KEY] });
  return name;
}

/** Who is behind an actor's credentials; nobody is anybody. */
function nameOf({ stack }: World, actor: Actor): string {
  if (actor === 'server') return stack.username;
  return ['nobody', 'revoked', 'read'].includes(actor) ? 'owner' : actor;
}

export const credentialsOf = (world: World, actor: Actor) => ({
  username: nameOf(world, actor),
  password: actor === 'server' ? world.stack.password : PASSWORD,
});

const videoOf = ({ images }: World) => ({ 'content-type': 'video/mp4', images });
const cacheIn = (project: string) => ({ cache: 'project', project, key: newName('key') });
const ofTable: Make = ({ ids }) => ({ ids: { aid: ids.table } });
const ofArray: Make = ({ ids }) => ({ ids: { aid: ids.array } });

/** An open upload of one part, which has arrived. */
async function makeUpload({ people: { owner }, ids }: World): Promise<string> {
  const uid = await beginUpload(owner, ids.mid, [newName('file')]);
  const answer = await putPart(owner, partPath(uid, 0, 0), someBytes(10));
  if (!answer.ok) throw new Error(await answer.text());
  return uid;
}

/** Nothing is sent there: no job of that kind ends. */
const RECEIVER = 'https://receiver.example/';

/** The owner's, and the only one. */
async function makeWebhook({ people: { owner } }: World): Promise<string> {
  const { items } = await owner.get<{ items: { id: string }[] }>('/api/webhooks');
  for (const { id } of items) await owner.delete(`/api/webhooks/${id}`);
  const given = { url: RECEIVER, kinds: ['file'] };
  return (await owner.post<{ id: string }>('/api/webhooks', given)).id;
}

/** An upload by tus of which nothing has come. */
async function makeTusUpload({ people: { owner }, ids }: World): Promise<string> {
  const metadata = { mid: ids.mid, parser: 'blob', aid: newName('file') };
  const answer = await new TusClient(owner).create(2, metadata);
  if (!answer.ok) throw new Error(await answer.text());
  return answer.headers.get('Location')?.split('/').at(-1) ?? '';
}

/**
 * The requests that need more than the world's ids. What a request could remove is made for it alone, so that no answer
 * depends on the one before.
 */
export const REQUESTS: Record<string, Make> = {
  'POST /login': (world, actor) => ({ json: credentialsOf(world, actor) }),
  'POST /login #wrong': (world, actor) => ({
    json: { ...credentialsOf(world, actor), password: 'another one' },
  }),
  'POST /events/{event}': () => ({ ids: { event: 'select/part' } }),

  'POST /users': () => ({ json: { username: newName('user'), password: PASSWORD } }),
  'GET /users/{username}': () => ({ ids: { username: 'owner' } }),
  'PUT /users/{username}': async world => ({
    ids: { username: await makeUser(world) },
    json: { password: 'another one' },
  }),
  // The one that it is already.
  'PUT /users/{username} #oneself': (world, actor) => {
    const { username, password } = credentialsOf(world, actor);
    return { ids: { username }, json: { password, current: password } };
  },
  'PUT /users/{username} #promote': (world, actor) => ({
    ids: { username: nameOf(world, actor) },
    json: { administrator: actor !== 'server' },
  }),
  'PUT /users/{username} #disable': async world => ({
    ids: { username: await makeUser(world) },
    json: { disabled: true },
  }),
  // What it is already.
  'PUT /workers/{id}': async ({ people }) => {
    const { items } = await people.server.get<{ items: { id: string }[] }>('/api/workers');
    return { ids: { id: items[0]?.id ?? '' }, json: { draining: false } };
  },
  'DELETE /users/{username}': async world => ({ ids: { username: await makeUser(world) } }),
  'POST /users/-/tokens': () => ({ json: { name: 'another', scope: 'read' } }),
  'DELETE /users/-/tokens/{id}': async ({ people }) => ({
    ids: { id: (await makeToken(people.owner, 'write')).id },
  }),
  'GET /users/{username}/tokens': () => ({ ids: { username: 'owner' } }),
  'DELETE /users/{username}/tokens/{id}': async ({ people }) => ({
    ids: { username: 'owner', id: (await makeToken(people.owner, 'write')).id },
  }),

  'POST /links': () => ({ json: { path: '/api/jobs' } }),

  'POST /webhooks': () => ({ json: { url: RECEIVER, kinds: ['file'] } }),
  'GET /webhooks/{id}': async world => ({ ids: { id: await makeWebhook(world) } }),
  'DELETE /webhooks/{id}': async world => ({ ids: { id: await makeWebhook(world) } }),
  'GET /webhooks/{id}/deliveries': async world => ({ ids: { id: await makeWebhook(world) } }),

  'POST /hosts': () => ({ json: { name: newName('host'), keys: [KEY] } }),
  'POST /hosts/-/scan': ({ sshd: { host, port } }) => ({
    json: { address: host, port, private: true },
  }),
  'PUT /hosts/{name}': async world => ({
    ids: { name: await makeHost(world) },
    json: { agent: true },
  }),
  'DELETE /hosts/{name}': async world => ({ ids: { name: await makeHost(world) } }),

  'POST /remotes': ({ sshd: { username, privateKey } }) => ({
    json: { hostname: 'host', username, privateKey, agent: false },
  }),
  'DELETE /remotes/{sid}': async ({ people, sshd }) => ({
    ids: { sid: await openSession(people.owner, sshd, { agent: false }) },
  }),
  'POST /remotes/{sid}/answers': () => ({ json: { challenge: 'none', answers: [] } }),
  'POST /remotes/{sid}/login': () => ({ json: {} }),
  'POST /remotes/launch': ({ ids }) => ({ json: { sid: ids.sid, command: 'true' } }),
  'POST /remotes/{sid}/batch': () => ({ json: { command: 'true' } }),
  'POST /remotes/{sid}/browse/{path}': ({ sshd }) => ({ ids: { path: sshd.home.slice(1) } }),
  'GET /remotes/{sid}/file/{path}': ({ images: [first = ''] }) => ({
    ids: { path: first.slice(1) },
  }),
  'PUT /remotes/{sid}/file/{path}': ({ sshd }) => ({
    ids: { path: join(sshd.home, newName('file')).slice(1) },
    bytes: someBytes(10),
    headers: { 'Content-Type': 'application/octet-stream' },
  }),
  'DELETE /remotes/{sid}/file/{path}': ({ sshd }) => {
    const path = join(sshd.home, newName('file'));
    writeFileSync(path, '');
    return { ids: { path: path.slice(1) } };
  },
  'POST /remotes/{sid}/videos': world => ({ json: videoOf(world) }),
  'POST /remotes/{sid}/videos #cache': world => ({
    json: { ...videoOf(world), project: world.ids.pid, key: newName('key') },
  }),
  'POST /remotes/{sid}/videos #foreign-cache': world => ({
    json: { ...videoOf(world), project: world.foreign, key: newName('key') },
  }),
  'GET /remotes/{sid}/videos/{vsid} #cache': ({ ids }) => ({ query: cacheIn(ids.pid) }),
  'GET /remotes/{sid}/videos/{vsid} #foreign': ({ foreign }) => ({ query: cacheIn(foreign) }),

  'GET /jobs/{id}': ({ ids }) => ({ ids: { id: ids.job } }),
  'DELETE /jobs/{id}': async ({ people, ids }) => ({
    ids: { id: (await launchAsync(people.owner, ids.sid, 'sleep 600')).id },
  }),
  'DELETE /jobs/{id}/record': async ({ people, ids }) => {
    const { id } = await launchAsync(people.owner, ids.sid, 'true');
    await waitForEnd(people.owner, id);
    return { ids: { id } };
  },
  'GET /jobs/{id}/command': ({ ids }) => ({ ids: { id: ids.job } }),
  'GET /jobs/{id}/history': ({ ids }) => ({ ids: { id: ids.job } }),
  'GET /jobs/{id}/output/times': ({ ids }) => ({ ids: { id: ids.job } }),
  'GET /jobs/{id}/events': ({ ids }) => ({ ids: { id: ids.job } }),
  'GET /jobs/{id}/output': ({ ids }) => ({ ids: { id: ids.job } }),
  'GET /jobs/{id}/result': ({ ids }) => ({ ids: { id: ids.vsid } }),
  'POST /jobs/{id}/retry': ({ ids }) => ({ ids: { id: ids.job } }),

  'POST /projects': () => ({ json: { name: 'another' } }),
  'PUT /projects/{pid}': () => ({ json: { name: newName('project') } }),
  'PUT /projects/{pid} #acl': async ({ people }) => ({
    ids: { pid: await makeProject(people) },
    json: { acl: { readers: [] } },
  }),
  'DELETE /projects/{pid}': async ({ people }) => ({ ids: { pid: await makeProject(people) } }),
  'DELETE /projects/{pid}/cache/{key}': async ({ people, ids }) => {
    const key = newName('key');
    await cacheVideo(people.owner, { ...ids, key });
    return { ids: { key } };
  },
  'POST /projects/{pid}/bookmarks': () => ({ json: { made: newName('bookmark') } }),
  'DELETE /bookmarks/{bid}': async ({ people, ids }) => ({
    ids: { bid: await makeBookmark(people, ids.pid) },
  }),

  'POST /projects/{pid}/models': () => ({ json: { name: 'another', 'model-type': 'any' } }),
  'PUT /models/{mid}': () => ({ json: { name: newName('model') } }),
  'DELETE /models/{mid}': async ({ people, ids }) => ({
    ids: { mid: await makeModel(people, ids.pid) },
  }),
  'GET /models/{mid}/parameters/{aid}': ({ ids }) => ({ ids: { aid: ids.parameter } }),
  'PUT /models/{mid}/parameters/{aid}': ({ ids }) => ({
    ids: { aid: ids.parameter },
    json: { value: newName('value') },
  }),
  'DELETE /models/{mid}/parameters/{aid}': async ({ people, ids }) => {
    const aid = newName('parameter');
    await putParameter(people, ids.mid, aid);
    return { ids: { aid } };
  },
  'GET /models/{mid}/files/{aid}': ({ ids }) => ({ ids: { aid: ids.file } }),
  'DELETE /models/{mid}/files/{aid}': async ({ people, ids }) => {
    const aid = newName('file');
    await parse(people.owner, { mid: ids.mid, parser: 'blob', files: { [aid]: [utf8('bytes')] } });
    return { ids: { aid } };
  },
  'DELETE /models/{mid}/arrays/{aid}': async ({ people, ids }) => {
    const aid = newName('array');
    await makeArray(people.owner, { mid: ids.mid, aid });
    return { ids: { aid } };
  },
  'GET /models/{mid}/arrays/{aid}': ofArray,
  'GET /models/{mid}/arrays/{aid}/metadata': ofArray,
  'GET /models/{mid}/arrays/{aid}/data': ofArray,
  'DELETE /models/{mid}/tables/{aid}': async ({ people, ids }) => {
    const aid = newName('table');
    await makeTable(people.owner, { mid: ids.mid, aid, csv: 'x\n1\n' });
    return { ids: { aid } };
  },
  'GET /models/{mid}/tables/{aid}/metadata': ofTable,
  'GET /models/{mid}/tables/{aid}/rows': ofTable,
  'GET /models/{mid}/tables/{aid}/rows #sorted': ({ ids }) => ({
    ids: { aid: ids.table },
    query: { sort: '-x' },
  }),
  'GET /models/{mid}/tables/{aid}/histogram': ({ ids }) => ({
    ids: { aid: ids.table },
    query: { column: 'x' },
  }),
  'GET /models/{mid}/tables/{aid}/series': ({ ids }) => ({
    ids: { aid: ids.table },
    query: { x: 'x', y: 'y' },
  }),
  'GET /models/{mid}/tables/{aid}/groupby': ({ ids }) => ({
    ids: { aid: ids.table },
    query: { by: 'x' },
  }),
  'GET /models/{mid}/tables/{aid}/data': ofTable,

  'POST /uploads': ({ ids }) => ({
    json: { mid: ids.mid, input: true, parser: 'blob', aids: [newName('file')] },
  }),
  'DELETE /uploads/{uid}': async world => ({ ids: { uid: await makeUpload(world) } }),
  'PUT /uploads/{uid}/files/{fid}/parts/{part}': () => ({
    bytes: someBytes(10),
    headers: { 'Content-Type': 'application/octet-stream' },
  }),
  'PUT /uploads/{uid}/files/{fid}/parts/{part} #copy': ({ ids, images: [path] }) => ({
    ids: { part: '1' },
    json: { sid: ids.sid, path },
  }),
  'OPTIONS /tus': () => ({}),
  'POST /tus': ({ ids }) => ({
    headers: {
      'Tus-Resumable': '1.0.0',
      'Upload-Length': '1',
      'Upload-Metadata': tusMetadata({ mid: ids.mid, parser: 'blob', aid: newName('file') }),
    },
  }),
  'HEAD /tus/{uid}': async world => ({
    ids: { uid: await makeTusUpload(world) },
    headers: { 'Tus-Resumable': '1.0.0' },
  }),
  'PATCH /tus/{uid}': async world => ({
    ids: { uid: await makeTusUpload(world) },
    bytes: someBytes(1),
    headers: {
      'Tus-Resumable': '1.0.0',
      'Upload-Offset': '0',
      'Content-Type': 'application/offset+octet-stream',
    },
  }),
  'DELETE /tus/{uid}': async world => ({
    ids: { uid: await makeTusUpload(world) },
    headers: { 'Tus-Resumable': '1.0.0' },
  }),
  'POST /uploads/{uid}/finished': async world => ({
    ids: { uid: await makeUpload(world) },
    json: { uploaded: [1] },
  }),
};
