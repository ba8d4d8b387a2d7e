import { cpSync, mkdirSync, readdirSync, renameSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { makeTable, type RowsPage, startParse, utf8 } from '../harness/clients/tables.ts';
import { makeModel } from '../harness/clients/uploads.ts';
import { drawFrames } from '../harness/files/draw-frames.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { openSession, waitForEnd } from '../harness/hosts/remote.ts';
import { describeUnless, missingPrograms } from '../harness/skip.ts';
import { startStack } from '../harness/stacks/stack.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const CHECKOUT = join(import.meta.dirname, '../..');
/** A parse and a view need the first, a decoder the other. */
const LOST = ['@duckdb', 'sharp'];

/** A built checkout of its own, so that packages can be taken away. */
function makeCheckout() {
  const { path, remove } = makeTempDir('packages');
  for (const name of ['dist', 'migrations', 'package.json', 'Procfile'])
    cpSync(join(CHECKOUT, name), join(path, name), { recursive: true });
  const packages = join(path, 'node_modules');
  mkdirSync(packages);
  for (const name of readdirSync(join(CHECKOUT, 'node_modules')))
    symlinkSync(join(CHECKOUT, 'node_modules', name), join(packages, name));
  return { root: path, packages, remove };
}

describeUnless(missingPrograms('sshd', 'ffmpeg'), 'lost packages', () => {
  const checkout = makeCheckout();
  const { stack, client, sshd } = useRemoteStack({
    start: async () => {
      const { stop, ...started } = await startStack({ root: checkout.root });
      return { ...started, stop: () => stop().finally(checkout.remove) };
    },
  });
  let mid: string;
  let sid: string;
  beforeAll(async () => {
    ({ mid } = await makeModel(client));
    sid = await openSession(client, sshd);
  });

  // As npm does it while it installs them anew.
  test('a parse, a view and a video while packages are missing are done once they are there', async () => {
    const table = await makeTable(client, { mid, aid: 'before', csv: 'a\n2\n1\n' });
    const folder = join(sshd.home, 'frames');
    const frames = await drawFrames({ folder, count: 3, kind: 'webp' });
    const away = (name: string) => join(checkout.packages, `away-${name}`);
    for (const name of LOST) renameSync(join(checkout.packages, name), away(name));
    const { job } = await startParse(client, {
      mid,
      parser: 'csv',
      files: { now: [utf8('a\n1\n')] },
    });
    const sorted = client.fetch(`${table}/rows?sort=a`);
    const video = { 'content-type': 'video/mp4', encode: 'worker', images: frames };
    const { vsid } = await client.post<{ vsid: string }>(`/api/remotes/${sid}/videos`, video);
    const lines = () => stack.log().split('\n');
    const isReleased = (kind: string) =>
      lines().filter(
        line => line.includes(`"kind":"${kind}"`) && line.includes('the job is released'),
      ).length > 1;
    await waitFor(() => ['parse', 'view', 'video'].every(isReleased), {
      what: 'each to be tried again',
      timeoutMs: 30_000,
    });
    for (const name of LOST) renameSync(away(name), join(checkout.packages, name));
    for (const id of [job, vsid])
      expect(await waitForEnd(client, id, 60_000)).toMatchObject({ state: 'succeeded' });
    expect(((await (await sorted).json()) as RowsPage).rows).toEqual([[1], [2]]);
  });
});
