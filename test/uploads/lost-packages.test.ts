import { cpSync, mkdirSync, readdirSync, renameSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { makeTable, type RowsPage, startParse, utf8 } from '../harness/clients/tables.ts';
import { makeModel } from '../harness/clients/uploads.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { waitForEnd } from '../harness/hosts/remote.ts';
import { startStack } from '../harness/stacks/stack.ts';
import { useStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const CHECKOUT = join(import.meta.dirname, '../..');
const LOST = '@duckdb';

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

const checkout = makeCheckout();
const { stack, client } = useStack({
  start: async () => {
    const { stop, ...started } = await startStack({ root: checkout.root });
    return { ...started, stop: () => stop().finally(checkout.remove) };
  },
});
let mid: string;
beforeAll(async () => {
  ({ mid } = await makeModel(client));
});

// As npm does it while it installs them anew.
test('a parse and a view while packages are missing are done once they are there', async () => {
  const table = await makeTable(client, { mid, aid: 'before', csv: 'a\n2\n1\n' });
  renameSync(join(checkout.packages, LOST), join(checkout.packages, 'away'));
  const { job } = await startParse(client, {
    mid,
    parser: 'csv',
    files: { now: [utf8('a\n1\n')] },
  });
  const sorted = client.fetch(`${table}/rows?sort=a`);
  const countReleases = (kind: string) =>
    stack
      .log()
      .split('\n')
      .filter(line => line.includes(`"kind":"${kind}"`) && line.includes('the job is released'))
      .length;
  await waitFor(() => countReleases('parse') > 1 && countReleases('view') > 1, {
    what: 'both to be tried again',
    timeoutMs: 30_000,
  });
  renameSync(join(checkout.packages, 'away'), join(checkout.packages, LOST));
  expect((await waitForEnd(client, job, 60_000)).state).toBe('succeeded');
  expect(((await (await sorted).json()) as RowsPage).rows).toEqual([[1], [2]]);
});
