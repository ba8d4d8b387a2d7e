import { finishUpload, partPath, putPart, sha256 } from '../../harness/clients/uploads.ts';
import { type HintCase, read, send, type World } from './world.ts';

const BYTES = new TextEncoder().encode('twelve bytes');
const project = { name: 'hinted' };

async function openUpload(world: World, aids: string[]): Promise<string> {
  const body = { mid: world.mid, input: true, parser: 'blob', aids };
  return (await read<{ id: string }>(send(world, 'POST', '/api/uploads', body))).id;
}

let upload = '';
let made = '';

/** Codes that need no host. */
export const SIMPLE_CASES: Record<string, HintCase> = {
  bad_request: {
    provoke: world => send(world, 'GET', '/api/hosts/%FF'),
    hint: /^Escape the path per RFC 3986/,
    follow: world => send(world, 'GET', `/api/hosts/${encodeURIComponent('host')}`),
  },
  invalid_input: {
    provoke: world => send(world, 'POST', '/api/projects', {}),
    hint: /^Correct the named fields/,
    follow: (world, { fields = [] }) =>
      send(
        world,
        'POST',
        '/api/projects',
        Object.fromEntries(fields.map(({ field }) => [field, 'now given'])),
      ),
  },
  unauthorized: {
    provoke: ({ stack }) => fetch(`${stack.url}/api/users/-`),
    hint: /HTTP Basic/,
    follow: ({ stack, client }) =>
      fetch(`${stack.url}/api/users/-`, { headers: { Authorization: client.authorization } }),
  },
  forbidden: {
    provoke: async world => {
      const body = { name: 'hinted', scope: 'read' };
      const { token } = await read<{ token: string }>(
        send(world, 'POST', '/api/users/-/tokens', body),
      );
      return postWithToken(world, token);
    },
    hint: /Make a token with "scope": "write"/,
    follow: async world => {
      const body = { name: 'hinted', scope: 'write' };
      const { token } = await read<{ token: string }>(
        send(world, 'POST', '/api/users/-/tokens', body),
      );
      return postWithToken(world, token);
    },
  },
  not_found: {
    provoke: world => send(world, 'GET', '/api/projects/unknown'),
    hint: /^GET \/api\/projects lists those/,
    follow: async world => {
      const { items } = await read<{ items: { id: string }[] }>(
        send(world, 'GET', '/api/projects'),
      );
      return send(world, 'GET', `/api/projects/${items[0]?.id}`);
    },
  },
  method_not_allowed: {
    provoke: world => send(world, 'PATCH', '/api/projects'),
    hint: /^Use GET, POST, HEAD\.$/,
    follow: (world, { hint }) =>
      send(world, /Use (\w+)/.exec(hint ?? '')?.[1] ?? '', '/api/projects'),
  },
  conflict: {
    provoke: async world => {
      const user = { username: 'hinted', password: 'a long password' };
      await send(world, 'POST', '/api/users', user);
      return send(world, 'POST', '/api/users', user);
    },
    hint: /^Choose another name/,
    follow: world =>
      send(world, 'POST', '/api/users', { username: 'hinted-2', password: 'a long password' }),
  },
  precondition_failed: {
    provoke: world =>
      send(world, 'PUT', `/api/projects/${world.pid}`, project, { 'If-Match': '"old"' }),
    hint: /^Get it again and repeat/,
    follow: async world => {
      const path = `/api/projects/${world.pid}`;
      const tag = (await send(world, 'GET', path)).headers.get('ETag') ?? '';
      return send(world, 'PUT', path, project, { 'If-Match': tag });
    },
  },
  payload_too_large: {
    provoke: world =>
      send(world, 'POST', '/api/projects', { ...project, description: 'x'.repeat(2 << 20) }),
    hint: /^Send a smaller/,
    follow: world => send(world, 'POST', '/api/projects', project),
  },
  address_too_long: {
    provoke: world => send(world, 'GET', `/api/jobs?after=${'x'.repeat(9_000)}`),
    hint: /^Send a shorter one/,
    follow: world => send(world, 'GET', '/api/jobs?after=x'),
  },
  headers_too_large: {
    provoke: world => send(world, 'GET', '/api/jobs', undefined, { 'X-Long': 'x'.repeat(40_000) }),
    hint: /^Send fewer or shorter header fields/,
    follow: world => send(world, 'GET', '/api/jobs', undefined, { 'X-Long': 'x' }),
  },
  unsupported_media_type: {
    provoke: world =>
      send(world, 'POST', '/api/projects', project, { 'Content-Type': 'text/plain' }),
    hint: /^Send application\/json/,
    follow: world =>
      send(world, 'POST', '/api/projects', project, { 'Content-Type': 'application/json' }),
  },
  upload_incomplete: {
    provoke: async world => {
      upload = await openUpload(world, ['incomplete']);
      return finishUpload(world.client, upload, [1]);
    },
    hint: /^Send the parts that "missing" lists as \[fid, pid\], then this again/,
    follow: async (world, problem) => {
      const { missing } = problem as unknown as { missing: [number, number][] };
      for (const [fid, pid] of missing)
        await putPart(world.client, partPath(upload, fid, pid), BYTES);
      return finishUpload(world.client, upload, [1]);
    },
  },
  client_confused: {
    provoke: async world => {
      upload = await openUpload(world, ['confused']);
      for (const pid of [0, 1]) await putPart(world.client, partPath(upload, 0, pid), BYTES);
      return finishUpload(world.client, upload, [1]);
    },
    hint: /^Send this again with the numbers of parts that were sent/,
    follow: world => finishUpload(world.client, upload, [2]),
  },
  digest_mismatch: {
    provoke: async world => {
      upload = await openUpload(world, ['digest']);
      const digest = `sha-256=:${sha256(new Uint8Array(1))}:`;
      return putPart(world.client, partPath(upload, 0, 0), BYTES, { 'Content-Digest': digest });
    },
    hint: /^Send the part again/,
    follow: world =>
      putPart(world.client, partPath(upload, 0, 0), BYTES, {
        'Content-Digest': `sha-256=:${sha256(BYTES)}:`,
      }),
  },
  range_not_satisfiable: {
    provoke: world =>
      send(world, 'GET', `/api/models/${world.mid}/files/file`, undefined, {
        Range: 'bytes=5000-',
      }),
    hint: /^Ask for bytes 0 to 11\.$/,
    follow: (world, { hint }) => {
      const [, first, last] = /bytes (\d+) to (\d+)/.exec(hint ?? '') ?? [];
      return send(world, 'GET', `/api/models/${world.mid}/files/file`, undefined, {
        Range: `bytes=${first}-${last}`,
      });
    },
  },
  too_many_requests: {
    provoke: async world => {
      for (;;) {
        const body = { mid: world.mid, input: true, parser: 'blob', aids: ['many'] };
        const response = await send(world, 'POST', '/api/uploads', body);
        if (!response.ok) return response;
        made = ((await response.json()) as { id: string }).id;
      }
    },
    hint: /DELETE/,
    follow: async world => {
      await send(world, 'DELETE', `/api/uploads/${made}`);
      const body = { mid: world.mid, input: true, parser: 'blob', aids: ['many'] };
      return send(world, 'POST', '/api/uploads', body);
    },
  },
  insufficient_storage: {
    provoke: async world => {
      const { id } = await read<{ id: string }>(send(world, 'POST', '/api/projects', project));
      const body = { name: 'full', 'model-type': 'any' };
      made = (await read<{ id: string }>(send(world, 'POST', `/api/projects/${id}/models`, body)))
        .id;
      await send(world, 'PUT', `/api/models/${made}/parameters/first`, big(world));
      return send(world, 'PUT', `/api/models/${made}/parameters/second`, big(world));
    },
    hint: /^Delete models, artifacts, .*LIMIT_PROJECT_BYTES sets the limit/,
    follow: async world => {
      await send(world, 'DELETE', `/api/models/${made}/parameters/first`);
      return send(world, 'PUT', `/api/models/${made}/parameters/second`, big(world));
    },
  },
};

/** More than half of what a project may hold. */
const big = ({ stack }: World) => ({
  value: 'x'.repeat(Math.round(Number(stack.environment.LIMIT_PROJECT_BYTES) * 0.6)),
});

const postWithToken = ({ stack }: World, token: string) =>
  fetch(`${stack.url}/api/projects`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify(project),
  });
