import { formatNpyHeader } from '../../shared/arrays/npy-header.ts';
import { type DrawnKind, drawFrame } from '../harness/files/draw-frames.ts';
import { waitFor } from '../harness/wait-for.ts';
import { type Answer, type Credentials, type Options, send } from './send.ts';
import type { World } from './world.ts';

type Person = 'writer' | 'reader' | 'stranger';

/** The key of a host that is not there. */
export const HOST_KEY = `ssh-ed25519 ${Buffer.concat([
  Buffer.from('0000000b', 'hex'),
  Buffer.from('ssh-ed25519'),
  Buffer.from('00000020', 'hex'),
  Buffer.alloc(32, 7),
]).toString('base64')}`;

/** A project with a model, a writer and a reader. */
export interface ProjectWithModel {
  pid: string;
  mid: string;
}

/** What cases begin from. It is made when it is first asked for, and once where nobody changes it. */
export class Fixtures {
  readonly #world: World;
  readonly #made = new Map<string, Promise<unknown>>();

  constructor(world: World) {
    this.#world = world;
  }

  /** Sends what must succeed. */
  async call(method: string, path: string, options: Options = {}): Promise<Answer> {
    const as = options.as === undefined ? this.#world.user : options.as;
    const target = `/api${path}`;
    const answer = await send(this.#world.url, { ...options, method, target, as });
    if (answer.status >= 400) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
    return answer;
  }

  once<T>(name: string, make: () => Promise<T>): Promise<T> {
    let made = this.#made.get(name) as Promise<T> | undefined;
    if (!made) {
      made = make();
      this.#made.set(name, made);
    }
    return made;
  }

  /** A user of their own. */
  async newUser(word = 'user', more: object = {}): Promise<Credentials> {
    const person = { username: this.#world.name(word), password: 'a long password' };
    await this.call('POST', '/users', { json: { ...person, ...more } });
    return person;
  }

  person(which: Person): Promise<Credentials> {
    return this.once(`person ${which}`, () => this.newUser(which));
  }

  async newProject(): Promise<string> {
    const json = { name: this.#world.name('project') };
    return (await this.call('POST', '/projects', { json })).json<{ id: string }>().id;
  }

  async newModel(pid: string): Promise<string> {
    const json = { 'model-type': 'any', name: this.#world.name('model') };
    return (await this.call('POST', `/projects/${pid}/models`, { json })).json<{ id: string }>().id;
  }

  projectWithModel(): Promise<ProjectWithModel> {
    return this.once('project with model', async () => {
      const pid = await this.newProject();
      return { pid, mid: await this.newModel(pid) };
    });
  }

  /** A project that `writer` writes and `reader` reads. */
  sharedProject(): Promise<ProjectWithModel> {
    return this.once('shared project', async () => {
      const pid = await this.newProject();
      const writers = [{ user: (await this.person('writer')).username }];
      const readers = [{ user: (await this.person('reader')).username }];
      await this.call('PUT', `/projects/${pid}`, { json: { acl: { writers, readers } } });
      return { pid, mid: await this.newModel(pid) };
    });
  }

  /** Opens a session that nobody else uses. */
  async newSession(agent = true): Promise<string> {
    const json = { ...this.#world.host, agent };
    return (await this.call('POST', '/remotes', { json })).json<{ sid: string }>().sid;
  }

  /** A session that lives for a while yet. */
  async session(agent = true): Promise<string> {
    const name = `session ${agent}`;
    const sid = await this.once(name, () => this.newSession(agent));
    const { user, url } = this.#world;
    const found = await send(url, { method: 'GET', target: `/api/remotes/${sid}`, as: user });
    const left = Date.parse(found.json<{ expires: string }>().expires) - Date.now();
    if (found.status === 200 && left > 45_000) return sid;
    this.#made.delete(name);
    return this.session(agent);
  }

  /** One that nobody uses until it has timed out. */
  abandoned(): Promise<{ sid: string; path: string }> {
    return this.once('abandoned', async () => {
      const sid = await this.newSession();
      return { sid, path: `/remotes/${sid}/videos/${'0'.repeat(26)}` };
    });
  }

  /** Runs a command that must succeed; its output. */
  async run(command: string): Promise<string> {
    const json = { sid: await this.session(), command };
    const answer = await this.call('POST', '/remotes/launch', { json });
    const { output, returncode } = answer.json<{ output: string; returncode: number }>();
    if (returncode !== 0) throw new Error(`${command}: ${answer.text}`);
    return output;
  }

  /** A folder on the host. */
  folder(): Promise<string> {
    return this.once('folder', async () => (await this.run('mktemp -d')).trim());
  }

  /** Frames that lie on the host. */
  frames(): Promise<string[]> {
    return this.once('frames', async () => {
      const folder = await this.folder();
      const paths: string[] = [];
      for (let i = 0; i < 5; i++) {
        const options = { width: 64, height: 48, kind: 'png' as DrawnKind, hue: i * 37 };
        const text = (await drawFrame(options)).toString('base64');
        const path = `${folder}/frame ${i}.png`;
        await this.run(`printf %s '${text}' | base64 -d > '${path}'`);
        paths.push(path);
      }
      return paths;
    });
  }

  /** Starts a video; where its session lives for a while yet. */
  async newVideo(more: object = {}): Promise<{ sid: string; vsid: string; path: string }> {
    const sid = await this.session();
    const json = { 'content-type': 'video/mp4', images: await this.frames(), ...more };
    const started = await this.call('POST', `/remotes/${sid}/videos`, { json });
    const { vsid } = started.json<{ vsid: string }>();
    return { sid, vsid, path: `/remotes/${sid}/videos/${vsid}` };
  }

  /** One that takes longer than a case, until it is cancelled. */
  async longVideo() {
    const [frame = ''] = await this.frames();
    return this.newVideo({ images: Array(20_000).fill(frame) });
  }

  /** A video that is ready, in a session that lives. */
  async video(type = 'video/mp4'): Promise<{ sid: string; vsid: string; path: string }> {
    const name = `video ${type}`;
    const sid = await this.session();
    const video = await this.once(name, async () => {
      const made = await this.newVideo({ 'content-type': type });
      await this.ended(made.vsid);
      return made;
    });
    if (video.sid === sid) return video;
    this.#made.delete(name);
    return this.video(type);
  }

  /** A command of the present session that has ended, as a job: three lines of output. */
  async command(): Promise<string> {
    const sid = await this.session();
    const made = await this.once('command', async () => {
      const json = { sid, command: 'printf "a\\nb\\nc\\n"; printf d >&2' };
      const answer = await this.call('POST', '/remotes/launch', { json });
      return { sid, job: answer.json<{ job: string }>().job };
    });
    if (made.sid === sid) return made.job;
    this.#made.delete('command');
    return this.command();
  }

  async ended(job: string): Promise<Record<string, unknown>> {
    return waitFor(
      async () => {
        const record = (await this.call('GET', `/jobs/${job}`)).json();
        return record.finished === null ? undefined : record;
      },
      { what: `job ${job} to end`, timeoutMs: 80_000, intervalMs: 50 },
    );
  }

  /** An upload that takes parts. */
  async newUpload(aids: string[] = [this.#world.name('file')], parser = 'blob', options = {}) {
    const { mid } = await this.projectWithModel();
    const json = { mid, input: false, parser, aids, ...options };
    return (await this.call('POST', '/uploads', { json })).json<{ id: string }>().id;
  }

  async putPart(
    uid: string,
    [fid, pid]: [number, number],
    body: string | Uint8Array,
  ): Promise<void> {
    const headers = { 'Content-Type': 'application/octet-stream' };
    await this.call('PUT', `/uploads/${uid}/files/${fid}/parts/${pid}`, { body, headers });
  }

  /** Uploads one file and waits for its parse, with these options of the parser; the job's record. */
  async parse(
    aid: string,
    text: string | Uint8Array,
    parser: string,
    options = {},
  ): Promise<Record<string, unknown>> {
    const uid = await this.newUpload([aid], parser, options);
    await this.putPart(uid, [0, 0], text);
    const json = { uploaded: [1] };
    const answer = await this.call('POST', `/uploads/${uid}/finished`, { json });
    return { ...(await this.ended(answer.json<{ job: string }>().job)), uid };
  }

  /** The path of a table: columns n, word, nothing; 50 rows. */
  table(): Promise<string> {
    return this.once('table', async () => {
      const { mid } = await this.projectWithModel();
      const rows = Array.from({ length: 50 }, (_, n) => `${n},${n % 2 ? 'odd' : 'even'},`);
      await this.parse('table', `n,word,nothing\n${rows.join('\n')}\n`, 'csv');
      return `/models/${mid}/tables/table`;
    });
  }

  /** The path of an array of 2 times 3 integers: 0 to 5. */
  async array(aid: string): Promise<string> {
    const { mid } = await this.projectWithModel();
    const values = [formatNpyHeader('|u1', [2, 3]), Buffer.from([0, 1, 2, 3, 4, 5])];
    await this.parse(aid, Buffer.concat(values), 'npy');
    return `/models/${mid}/arrays/${aid}`;
  }

  /** The path of a file artifact that holds "0123456789". */
  file(): Promise<string> {
    return this.once('file', async () => {
      const { mid } = await this.projectWithModel();
      await this.parse('file', '0123456789', 'blob');
      return `/models/${mid}/files/file`;
    });
  }
}
