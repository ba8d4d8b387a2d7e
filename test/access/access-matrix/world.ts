import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Client } from '../../../servers/api-client.ts';
import { addUsers } from '../../harness/clients/projects.ts';
import { makeArray, makeTable, parse, utf8 } from '../../harness/clients/tables.ts';
import { beginUpload } from '../../harness/clients/uploads.ts';
import { drawFrames } from '../../harness/files/draw-frames.ts';
import {
  addHost,
  connectClient,
  launchAsync,
  openSession,
  waitForEnd,
} from '../../harness/hosts/remote.ts';
import { startTestSshd, type TestSshd } from '../../harness/hosts/sshd.ts';
import type { Form } from '../../harness/stacks/forms.ts';
import type { Stack } from '../../harness/stacks/stack.ts';
import { UNLIMITED } from '../../harness/stacks/use-stack.ts';
import type { Actor } from './expected.ts';

const PEOPLE = ['stranger', 'reader', 'writer', 'administrator', 'owner'] as const;
type People = Record<(typeof PEOPLE)[number] | 'server', Client>;

/** A service with something behind every id, and everybody who may ask for it. */
export interface World {
  stack: Stack;
  sshd: TestSshd;
  people: People;
  /** Authorization of each actor. */
  authorization: Record<Actor, string | undefined>;
  /** What is read, and never changed so that it would be gone, by the names of the path parameters. */
  ids: typeof FIXED & Record<'pid' | 'mid' | 'bid' | 'sid' | 'vsid' | 'uid' | 'job', string>;
  /** A project that `owner` has no part in. */
  foreign: string;
  /** Frames of a video, on the host. */
  images: string[];
  stop(): Promise<void>;
}

/** Names that are chosen here. */
const FIXED = {
  parameter: 'a parameter',
  file: 'a file',
  table: 'a table',
  array: 'an array',
  key: 'some/key',
  name: 'host',
  fid: '0',
  part: '0',
};

const ACL = {
  administrators: [{ user: 'administrator' }],
  writers: [{ user: 'writer' }, { user: 'owner' }],
  readers: [{ user: 'reader' }],
};

export async function makeWorld(form: Form): Promise<World> {
  const [stack, sshd] = await Promise.all([form.start(UNLIMITED), startTestSshd()]);
  const stop = async () => {
    await stack.stop();
    await sshd.stop();
  };
  try {
    const server = connectClient(stack);
    const people = { ...(await addUsers(stack, PEOPLE)), server };
    await addHost(server, sshd);
    const images = await drawFrames({ folder: join(sshd.home, 'frames'), count: 3 });
    const remote = await makeRemote(people.owner, sshd, images);
    const stored = await makeStored(people, remote);
    const { id: foreign } = await people.stranger.post<{ id: string }>('/api/projects', {
      name: 'foreign',
    });
    return {
      stack,
      sshd,
      people,
      authorization: await authorize(people),
      ids: { ...FIXED, ...remote, ...stored },
      foreign,
      images,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

export async function makeProject({ administrator }: People): Promise<string> {
  const body = { name: 'a project', acl: ACL };
  return (await administrator.post<{ id: string }>('/api/projects', body)).id;
}

export async function makeModel({ administrator }: People, pid: string): Promise<string> {
  const body = { name: 'a model', 'model-type': 'any' };
  return (await administrator.post<{ id: string }>(`/api/projects/${pid}/models`, body)).id;
}

export async function makeBookmark({ administrator }: People, pid: string): Promise<string> {
  const body = { made: performance.now() };
  return (await administrator.post<{ id: string }>(`/api/projects/${pid}/bookmarks`, body)).id;
}

export async function putParameter(
  { administrator }: People,
  mid: string,
  aid: string,
): Promise<void> {
  const path = `/api/models/${mid}/parameters/${encodeURIComponent(aid)}`;
  const answer = await administrator.fetch(path, { method: 'PUT', body: '{"value":1}' });
  if (!answer.ok) throw new Error(await answer.text());
}

/** A command that has ended, and a video that is ready. */
async function makeRemote(owner: Client, sshd: TestSshd, images: string[]) {
  // A batch system that takes no job.
  mkdirSync(join(sshd.home, 'bin'));
  writeFileSync(join(sshd.home, 'bin/sbatch'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
  writeFileSync(join(sshd.home, '.bashrc'), 'export PATH="$HOME/bin:$PATH"\n');
  const sid = await openSession(owner, sshd);
  const { id: job } = await launchAsync(owner, sid, 'echo done');
  const body = { 'content-type': 'video/mp4', images };
  const { vsid } = await owner.post<{ vsid: string }>(`/api/remotes/${sid}/videos`, body);
  for (const id of [job, vsid]) {
    const { state, error } = await waitForEnd(owner, id);
    if (state !== 'succeeded') throw new Error(JSON.stringify(error));
  }
  return { sid, job, vsid };
}

async function makeStored(people: People, { sid, vsid }: { sid: string; vsid: string }) {
  const { owner } = people;
  const pid = await makeProject(people);
  const mid = await makeModel(people, pid);
  const bid = await makeBookmark(people, pid);
  await putParameter(people, mid, FIXED.parameter);
  await makeTable(owner, { mid, aid: FIXED.table, csv: 'x,y\n1,2\n3,4\n' });
  await makeArray(owner, { mid, aid: FIXED.array });
  await parse(owner, { mid, parser: 'blob', files: { [FIXED.file]: [utf8('bytes')] } });
  await cacheVideo(owner, { sid, vsid, pid, key: FIXED.key });
  return { pid, mid, bid, uid: await beginUpload(owner, mid, ['another file']) };
}

export async function cacheVideo(
  owner: Client,
  { sid, vsid, pid, key }: Record<'sid' | 'vsid' | 'pid' | 'key', string>,
): Promise<void> {
  const query = new URLSearchParams({ cache: 'project', project: pid, key });
  await owner.getBytes(`/api/remotes/${sid}/videos/${vsid}?${query}`);
}

async function authorize({ owner, ...others }: People): Promise<World['authorization']> {
  const revoked = await makeToken(owner, 'write');
  await owner.delete(`/api/users/-/tokens/${revoked.id}`);
  const read = await makeToken(owner, 'read');
  return {
    nobody: undefined,
    stranger: others.stranger.authorization,
    reader: others.reader.authorization,
    writer: others.writer.authorization,
    administrator: others.administrator.authorization,
    owner: owner.authorization,
    server: others.server.authorization,
    revoked: `Bearer ${revoked.token}`,
    read: `Bearer ${read.token}`,
  };
}

export function makeToken(
  client: Client,
  scope: 'read' | 'write',
): Promise<{ id: string; token: string }> {
  return client.post('/api/users/-/tokens', { name: 'of the matrix', scope });
}
