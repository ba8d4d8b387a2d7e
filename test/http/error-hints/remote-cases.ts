import { isEnded, type Job } from '../../harness/hosts/remote.ts';
import { waitFor } from '../../harness/wait-for.ts';
import { type HintCase, read, send, type World } from './world.ts';

const launch = (world: World, command: string, headers?: Record<string, string>) =>
  send(world, 'POST', '/api/remotes/launch', { sid: world.sid, command }, headers);

const open = (world: World, given: object = {}) =>
  send(world, 'POST', '/api/remotes', {
    hostname: 'host',
    username: world.sshd.username,
    privateKey: world.sshd.privateKey,
    ...given,
  });

const video = (world: World, given: object = {}, sid = world.sid) =>
  send(world, 'POST', `/api/remotes/${sid}/videos`, {
    'content-type': 'video/mp4',
    images: world.images,
    ...given,
  });

const addHost = (world: World, name: string, given: object = {}) =>
  send(world, 'POST', '/api/hosts', {
    name,
    address: world.sshd.host,
    port: world.sshd.port,
    keys: [world.sshd.hostKey],
    private: true,
    ...given,
  });

/** The address of a video that is ready. */
async function readyVideo(world: World): Promise<string> {
  const { vsid } = await read<{ vsid: string }>(video(world));
  const at = `/api/remotes/${world.sid}/videos/${vsid}`;
  await awaitReady(world, at);
  return at;
}

const awaitReady = (world: World, at: string) =>
  waitFor(async () => (await read<{ ready?: boolean }>(send(world, 'GET', `${at}/status`))).ready, {
    what: 'the video to be ready',
    timeoutMs: 60_000,
    intervalMs: 100,
  });

let at = '';
/** A key that is nobody's. */
const OTHER_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBvYQZ8pUyVQ3cKk4Gd3cSg8QzTt9Ks6oG0n0w1mV7qX';

/** Codes of sessions, commands and videos. */
export const REMOTE_CASES: Record<string, HintCase> = {
  session_not_found: {
    provoke: world => send(world, 'POST', '/api/remotes/launch', { sid: 'x', command: 'true' }),
    hint: /^Open a session with POST \/api\/remotes/,
    follow: async world => {
      const { sid } = await read<{ sid: string }>(open(world));
      return send(world, 'POST', '/api/remotes/launch', { sid, command: 'true' });
    },
  },
  missing_agent: {
    provoke: async world => {
      await addHost(world, 'bare', { agent: false });
      return open(world, { hostname: 'bare', agent: true });
    },
    hint: /^Leave "agent" out/,
    follow: world => open(world, { hostname: 'bare' }),
  },
  agent_required: {
    provoke: async world => {
      const { sid } = await read<{ sid: string }>(open(world, { agent: false }));
      return video(world, {}, sid);
    },
    hint: /^Open a session with "agent": true/,
    follow: async world => {
      const { sid } = await read<{ sid: string }>(open(world, { agent: true }));
      return video(world, {}, sid);
    },
  },
  missing_content_type: {
    provoke: world => video(world, { 'content-type': undefined }),
    hint: /^Give "content-type": "video\/mp4"/,
    follow: world => video(world, { 'content-type': 'video/mp4' }),
  },
  unsupported_video_type: {
    provoke: world => video(world, { 'content-type': 'video/avi' }),
    hint: /^Use "video\/mp4"/,
    follow: world => video(world, { 'content-type': 'video/mp4' }),
  },
  missing_images: {
    provoke: world => video(world, { images: undefined }),
    hint: /"images"/,
    follow: world => video(world, { images: world.images }),
  },
  video_not_ready: {
    provoke: async world => {
      const { vsid } = await read<{ vsid: string }>(video(world));
      at = `/api/remotes/${world.sid}/videos/${vsid}`;
      return send(world, 'GET', at);
    },
    hint: /^Poll its status until ready is true/,
    follow: async world => {
      await awaitReady(world, at);
      return send(world, 'GET', at);
    },
  },
  unknown_cache_type: {
    provoke: async world => {
      at = await readyVideo(world);
      return send(world, 'GET', `${at}?cache=disk&project=${world.pid}&key=k`);
    },
    hint: /^Use cache=project/,
    follow: world => send(world, 'GET', `${at}?cache=project&project=${world.pid}&key=k`),
  },
  missing_project: {
    provoke: async world => {
      at = await readyVideo(world);
      return send(world, 'GET', `${at}?cache=project&key=k`);
    },
    hint: /^Give the id of a project/,
    follow: world => send(world, 'GET', `${at}?cache=project&key=k&project=${world.pid}`),
  },
  missing_cache_key: {
    provoke: async world => {
      at = await readyVideo(world);
      return send(world, 'GET', `${at}?cache=project&project=${world.pid}`);
    },
    hint: /^Give the key/,
    follow: world => send(world, 'GET', `${at}?cache=project&project=${world.pid}&key=k`),
  },
  host_not_allowed: {
    provoke: world => open(world, { hostname: 'elsewhere' }),
    hint: /adds one with POST \/api\/hosts/,
    follow: async world => {
      await addHost(world, 'elsewhere');
      return open(world, { hostname: 'elsewhere' });
    },
  },
  remote_authentication_failed: {
    provoke: world => open(world, { privateKey: undefined, password: 'wrong' }),
    hint: /credentials that the host accepts/,
    follow: world => open(world),
  },
  host_changed: {
    provoke: async world => {
      await addHost(world, 'moved');
      const { sid } = await read<{ sid: string }>(open(world, { hostname: 'moved' }));
      await send(world, 'PUT', '/api/hosts/moved', { keys: [world.sshd.hostKey, OTHER_KEY] });
      return send(world, 'POST', '/api/remotes/launch', { sid, command: 'true' });
    },
    hint: /^Open a new session with POST \/api\/remotes/,
    follow: world => open(world, { hostname: 'moved' }),
  },
  host_key_changed: {
    provoke: async world => {
      await addHost(world, 'changed', { keys: [OTHER_KEY] });
      return open(world, { hostname: 'changed' });
    },
    hint: /a server administrator sets the new key in the host's entry/,
    follow: async world => {
      await send(world, 'PUT', '/api/hosts/changed', { keys: [world.sshd.hostKey] });
      return open(world, { hostname: 'changed' });
    },
  },
  idempotency_conflict: {
    provoke: async world => {
      await launch(world, 'true', { 'Idempotency-Key': 'hinted' });
      return launch(world, 'false', { 'Idempotency-Key': 'hinted' });
    },
    hint: /^Use a new key for a new request/,
    follow: world => launch(world, 'false', { 'Idempotency-Key': 'hinted-2' }),
  },
  output_limit: {
    provoke: world => launch(world, 'yes'),
    hint: /^Write to a file on the host instead/,
    follow: world => launch(world, 'head -c 3000000 /dev/zero > big'),
  },
  time_limit: {
    provoke: world => launch(world, 'sleep 60'),
    hint: /^Split the work into shorter commands/,
    follow: world => launch(world, 'sleep 0.1'),
  },
  cancelled: {
    provoke: async world => {
      const held = launch(world, 'sleep 60 # hinted');
      const job = await waitFor(
        async () => {
          const { items } = await read<{ items: Job[] }>(send(world, 'GET', '/api/jobs?limit=1'));
          return items.find(one => one.kind === 'command' && !isEnded(one));
        },
        { what: 'the command to be a job' },
      );
      await send(world, 'DELETE', `/api/jobs/${job.id}`);
      return held;
    },
    hint: undefined,
    follow: world => launch(world, 'true'),
  },
};
