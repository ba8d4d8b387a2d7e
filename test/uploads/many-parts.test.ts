import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { expectProblem } from '../harness/clients/problem.ts';
import {
  beginUpload,
  finishUpload,
  makeModel,
  partPath,
  putPart,
  readUpload,
  someBytes,
} from '../harness/clients/uploads.ts';
import { openStackDatabase } from '../harness/databases/database.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack } from '../harness/stacks/use-stack.ts';

const MAX_PARTS = 100_000;

describeStack(undefined, 'an upload of very many parts', form => {
  const { stack, client } = useStack(form);

  test('has at most 100,000, which are compared without being listed', async () => {
    const { mid } = await makeModel(client);
    const uid = await beginUpload(client, mid, ['many']);
    // As if they had been sent: only the objects are not there.
    const sql = openStackDatabase(stack);
    const key = `uploads/${uid}/${randomBytes(8).toString('hex')}`;
    const [left, last] = [10, MAX_PARTS - 1];
    await sql`insert into upload_parts (upload, file, part, size, digest, object)
      select ${uid}, 0, n, 1, '', ${key} || n from generate_series(${left}::int, ${last}) n`;
    await sql`update uploads set parts = ${MAX_PARTS - left}, bytes = ${MAX_PARTS - left} where uid = ${uid}`;
    for (let part = 0; part < left; part++) {
      const answer = await putPart(client, partPath(uid, 0, part), someBytes(1));
      expect(answer.status).toBe(200);
    }
    const beyond = await putPart(client, partPath(uid, 1, 0), someBytes(1));
    const { fields } = await expectProblem(beyond, 400, 'invalid_input');
    expect(fields?.map(({ field }) => field)).toEqual(['part']);
    expect((await putPart(client, partPath(uid, 0, 0), someBytes(2))).status).toBe(200);
    expect((await readUpload(client, uid)).parts).toHaveLength(MAX_PARTS);

    const fewer = await finishUpload(client, uid, [MAX_PARTS - 1]);
    expect([fewer.status, ((await fewer.json()) as { excess: unknown }).excess]).toEqual([
      400,
      [[0, last]],
    ]);
    const none = (await (await finishUpload(client, uid, [1])).json()) as {
      excess: unknown[];
      truncated: boolean;
    };
    expect([none.excess.length, none.truncated]).toEqual([10_000, true]);
    expect((await finishUpload(client, uid, [MAX_PARTS])).status).toBe(202);
    await sql.end();
  });
});
