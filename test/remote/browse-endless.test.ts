import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadOrCreateKeyPair } from '../../servers/key-pair.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { type Job, waitForEnd } from '../harness/hosts/remote.ts';
import { makeEntry, startSftpServer } from '../harness/hosts/sftp-server.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack, useStarted } from '../harness/stacks/use-stack.ts';

const PASSWORD = 'a password';
/** LIMIT_OUTPUT_BYTES. */
const LIMIT = 1 << 20;
/** Names far beyond the limit, after which the host would be believed. */
const MAX = 50_000;

const directory = makeTempDir('browse-endless');
afterAll(() => directory.remove());

describeStack(undefined, 'a host that lists a directory without end', form => {
  const key = loadOrCreateKeyPair(join(directory.path, 'server_key'));
  let listed = 0;
  const server = useStarted(() =>
    startSftpServer({
      hostKey: key.private,
      password: PASSWORD,
      async *list() {
        for (; listed < MAX; listed += 100)
          yield Array.from({ length: 100 }, (_, n) => makeEntry(`${listed + n}`.padEnd(200, 'x')));
      },
    }),
  );
  const { client } = useStack(form, { env: { LIMIT_OUTPUT_BYTES: String(LIMIT) } });

  beforeAll(async () => {
    await client.post('/api/hosts', {
      name: 'endless',
      address: '127.0.0.1',
      port: server.port,
      keys: [key.public],
      agent: false,
      private: true,
    });
  });

  test('is read up to LIMIT_OUTPUT_BYTES, and the answer is cut', async () => {
    const login = { hostname: 'endless', username: 'somebody', password: PASSWORD };
    const { sid } = await client.post<{ sid: string }>('/api/remotes', login);
    const answer = await client.fetch(`/api/remotes/${sid}/browse/all`, { method: 'POST' });
    // A problem, where nothing was sent yet.
    const told = await answer.text().catch(() => 'cut');
    expect(answer.status === 200 ? told : 'cut').toBe('cut');
    const { items } = await client.get<{ items: Job[] }>('/api/jobs?kind=browse');
    const job = await waitForEnd(client, items[0]?.id ?? '');
    expect(job).toMatchObject({
      state: 'failed',
      error: { code: 'output_limit', hint: expect.stringContaining('LIMIT_OUTPUT_BYTES') },
    });
    expect(job.error?.detail).toContain('/all is larger than 1048576 bytes');
    expect(listed).toBeLessThan(MAX);
  });
});
