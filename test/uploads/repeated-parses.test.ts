import { mkdirSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { expectProblem } from '../harness/clients/problem.ts';
import { parse, type RowsPage, utf8 } from '../harness/clients/tables.ts';
import { TusClient } from '../harness/clients/tus.ts';
import {
  finishUpload,
  makeModel,
  partPath,
  putPart,
  readUpload,
} from '../harness/clients/uploads.ts';
import { type Job, waitForEnd } from '../harness/hosts/remote.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack } from '../harness/stacks/use-stack.ts';

const PARTS = [utf8('a,b\n1,2\n'), utf8('3,4\n')] as const;
const BAD = utf8('a,b\n1,2,3\n');

describeStack(undefined, 'a parse that is repeated', form => {
  const { stack, client } = useStack(form);
  let mid: string;

  beforeEach(async () => {
    ({ mid } = await makeModel(client));
  });

  const repeat = (job: string) => client.fetch(`/api/jobs/${job}/retry`, { method: 'POST' });
  const readParses = async () =>
    (await client.get<{ parses: { state: string }[] }>(`/api/models/${mid}`)).parses;

  /** Puts the stored parts of an upload where the store does not find them; returns them by the returned function. */
  function losePartsOf(uid: string): () => void {
    const folder = join(stack.dataDir, 'objects/objects/uploads', uid);
    const names = readdirSync(folder);
    expect(names.length).toBeGreaterThan(0);
    const move = (from: string, to: string) => {
      for (const name of names) renameSync(join(from, name), join(to, name));
    };
    const kept = join(stack.dataDir, `kept-${uid}`);
    mkdirSync(kept);
    move(folder, kept);
    return () => {
      mkdirSync(folder, { recursive: true });
      move(kept, folder);
    };
  }

  /** The upload and its failed parse; its parts are there again. */
  const failing = {
    parts: async () => {
      const begun = { mid, input: false, parser: 'csv', aids: ['day'] };
      const { id: uid } = await client.post<{ id: string }>('/api/uploads', begun);
      for (const [pid, bytes] of PARTS.entries())
        await putPart(client, partPath(uid, 0, pid), bytes);
      const restore = losePartsOf(uid);
      const finished = await finishUpload(client, uid, [PARTS.length]);
      const { job } = (await finished.json()) as { job: string };
      expect((await waitForEnd(client, job)).state).toBe('failed');
      restore();
      return { uid, job };
    },
    tus: async () => {
      const tus = new TusClient(client);
      const [first, last] = PARTS;
      const length = first.length + last.length;
      const given = { mid, parser: 'csv', aid: 'day' };
      const begun = await tus.create(length, given, { bytes: first });
      const path = begun.headers.get('Location') ?? '';
      const uid = path.split('/').at(-1) ?? '';
      const restore = losePartsOf(uid);
      expect((await tus.patch(path, first.length, last)).status).toBe(204);
      const { job = '' } = await readUpload(client, uid);
      expect((await waitForEnd(client, job)).state).toBe('failed');
      restore();
      return { uid, job };
    },
  };

  for (const protocol of ['parts', 'tus'] as const)
    test(`reads the same parts, takes the failed one's place, and is begun once: ${protocol}`, async () => {
      const { uid, job } = await failing[protocol]();
      const answers = await Promise.all([repeat(job), repeat(job)]);
      expect(answers.map(({ status }) => status).sort()).toEqual([202, 409]);
      const begun = answers.find(({ status }) => status === 202);
      const again = (await begun?.json()) as Job & { retryOf: string; upload: string };
      expect(again).toMatchObject({ kind: 'parse', retryOf: job, upload: uid, model: mid });
      expect((await waitForEnd(client, again.id)).state).toBe('succeeded');
      const record = await readUpload(client, uid);
      expect(record).toMatchObject({ state: 'done', job: again.id, parts: [] });
      expect(record).not.toHaveProperty('error');
      expect(await readParses()).toMatchObject([{ state: 'done' }]);
      const { rows } = await client.get<RowsPage>(`/api/models/${mid}/tables/day/rows`);
      expect(rows).toEqual([
        [1, 2],
        [3, 4],
      ]);
      const late = await expectProblem(await repeat(job), 409, 'conflict');
      expect(late.detail).toContain(again.id);
      const done = await expectProblem(await repeat(again.id), 409, 'conflict');
      expect(done.hint).toContain('POST /api/uploads');
    });

  test('fails again for the same bad file', async () => {
    const { uid, id } = await parse(client, { mid, parser: 'csv', files: { bad: [BAD] } });
    const late = await expectProblem(await finishUpload(client, uid, [1]), 409, 'conflict');
    expect(late.hint).toContain('/retry');
    const again = (await (await repeat(id)).json()) as Job;
    expect(await waitForEnd(client, again.id)).toMatchObject({
      state: 'failed',
      error: { code: 'parse_failed' },
    });
    expect(await readUpload(client, uid)).toMatchObject({
      state: 'failed',
      job: again.id,
      error: { errors: [{ file: 0, row: 2 }] },
    });
    expect(await readParses()).toMatchObject([{ state: 'failed' }]);
  });
});
