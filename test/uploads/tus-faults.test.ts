import { randomBytes } from 'node:crypto';
import { request } from 'node:http';
import { beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../harness/clients/problem.ts';
import { TusClient } from '../harness/clients/tus.ts';
import { makeModel, readUpload, someBytes } from '../harness/clients/uploads.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const MB = 1 << 20;

describeStack(undefined, 'uploads by tus where something fails', form => {
  const { stack, client } = useStack(form, {
    alone: 'kills and stops its processes',
    env: { LIMIT_OPEN_JOBS: '1' },
  });
  const tus = new TusClient(client);
  let mid: string;

  beforeAll(async () => {
    ({ mid } = await makeModel(client));
  });

  const begin = async (length: number, aid: string): Promise<string> =>
    (await tus.create(length, { mid, parser: 'blob', aid })).headers.get('Location') ?? '';
  const stateOf = async (path: string) =>
    (await readUpload(client, path.split('/').at(-1) ?? '')).state;
  const fileOf = async (aid: string) => {
    const answer = await waitFor(
      async () => {
        const found = await client.fetch(`/api/models/${mid}/files/${aid}`);
        return found.ok ? found : undefined;
      },
      { what: `the file ${aid}` },
    );
    return Buffer.from(await answer.arrayBuffer());
  };

  test('an API that is killed while bytes come loses at most the last 64 MiB of them', async () => {
    const bytes = randomBytes(100 * MB);
    const path = await begin(bytes.length, 'killed');
    const sending = request(stack.url + path, {
      method: 'PATCH',
      headers: {
        'Tus-Resumable': '1.0.0',
        'Content-Type': 'application/offset+octet-stream',
        'Upload-Offset': 0,
        'Content-Length': bytes.length,
        Authorization: client.authorization,
      },
    });
    const broken = new Promise(resolve => sending.once('error', resolve));
    // The sockets hold less than the rest back, so that more than one part of 64 MiB was read.
    await new Promise<void>(resolve => sending.write(bytes.subarray(0, 98 * MB), () => resolve()));
    stack.kill('windlass-api');
    await broken;
    const offset = await waitFor(
      async () => {
        const answer = await tus.head(path);
        return answer.ok ? Number(answer.headers.get('Upload-Offset')) : undefined;
      },
      { what: 'the API to be back' },
    );
    expect(offset).toBe(64 * MB);
    expect((await tus.patch(path, offset, bytes.subarray(offset))).status).toBe(204);
    expect((await fileOf('killed')).equals(bytes)).toBe(true);
  });

  test('with too many open jobs the last byte is kept, and the parse begins later', async () => {
    const bytes = someBytes(1_000);
    const [first, second] = [await begin(1_000, 'first'), await begin(1_000, 'second')];
    const { items } = await client.get<{ items: unknown[] }>('/api/uploads');
    stack.kill('windlass-worker', 'SIGSTOP');
    try {
      expect((await tus.patch(first, 0, bytes)).status).toBe(204);
      // After 429 tus-js-client would give up, and after a HEAD that fails otherwise it would send all of it again.
      expect((await tus.patch(second, 0, bytes)).status).toBe(423);
      expect((await tus.head(second)).status).toBe(423);
      expect(await stateOf(second)).toBe('open');
      // An upload that nobody was told of does not stay.
      const third = await tus.create(1_000, { mid, parser: 'blob', aid: 'third' }, { bytes });
      await expectProblem(third, 429, 'too_many_requests');
      const after = await client.get<{ items: unknown[] }>('/api/uploads');
      expect(after.items).toHaveLength(items.length);
    } finally {
      stack.kill('windlass-worker', 'SIGCONT');
    }
    await waitFor(async () => (await tus.head(second)).status === 200, { what: 'the parse' });
    expect(await tus.offset(second)).toBe(1_000);
    expect((await fileOf('second')).equals(bytes)).toBe(true);
  });
});
