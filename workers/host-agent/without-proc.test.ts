import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { findMarked, makeMark } from '../../test/faults/stubborn-processes.ts';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import {
  collect,
  filesOf,
  listRuns,
  runDirectory,
  useAgentHarness,
} from '../../test/harness/hosts/agent-harness.ts';
import { hideProc, missingHiddenProc } from '../../test/harness/hosts/hidden-proc.ts';
import type { LocalExec } from '../../test/harness/hosts/local-exec.ts';
import { skipTest } from '../../test/harness/skip.ts';
import { waitFor } from '../../test/harness/wait-for.ts';

const harness = useAgentHarness();
const directory = makeTempDir('without-proc');
afterAll(() => directory.remove());

test('without /proc the output of a run whose supervisor was killed is whole', async context => {
  const missing = missingHiddenProc();
  if (missing) skipTest(context, missing);
  const host = makeHostWithoutProc();
  const client = await harness.connect(host);
  const command =
    'i=0; until test -e go; do i=$((i+1)); echo $i; echo $i >>ledger; sleep 0.01; done; exit 3';
  const events = client.run({ id: 'whole', token: 'one', command });
  await events.next();
  const ledger = () => readFileSync(join(host.account.home, 'ledger'), 'utf8');
  await waitFor(() => existsSync(join(host.account.home, 'ledger')), { what: 'its first line' });
  const read = () => readFileSync(join(runDirectory(host, 'whole'), 'supervisor'), 'utf8');
  const first = read();
  process.kill(Number(first.split(' ')[2]), 'SIGKILL');
  const outcome = collect({ client, id: 'whole', events });
  await waitFor(() => read() !== first, { what: 'another supervisor' });
  const written = ledger().length;
  await waitFor(() => ledger().length > written + 500, { what: 'more lines' });
  writeFileSync(join(host.account.home, 'go'), '');
  const { last, stdout } = await outcome;
  expect(last).toMatchObject({ type: 'ended', code: 3 });
  expect(stdout.toString()).toBe(ledger());
});

function makeHostWithoutProc(): LocalExec {
  const { path, shell } = hideProc(directory.path);
  return harness.makeHost(shell, { PATH: path });
}

test('without /proc a run is reported as running, and its process group is killed', async context => {
  const missing = missingHiddenProc();
  if (missing) skipTest(context, missing);
  const host = makeHostWithoutProc();
  const refused = harness.connect(host, { startup: 'each' });
  await expect(refused).rejects.toMatchObject({
    code: 'host_unsupported',
    message: expect.stringContaining('the agent needs /proc/PID/environ'),
  });
  expect(filesOf(host).filter(file => !/^agent-/.test(file))).toEqual([]);
  const client = await harness.connect(host);
  expect((await harness.run(client, 'test -e /proc/version')).last).toMatchObject({ code: 1 });
  const [inside, outside] = [makeMark(), makeMark()];
  const script = `sleep ${inside} &\nsetsid sleep ${outside} >/dev/null 2>&1 &\necho begun\nwait`;
  const events = client.run({ id: 'tree', token: 'one', script });
  await events.next();
  const counts = () => [findMarked(inside).length, findMarked(outside).length];
  await waitFor(() => String(counts()) === '1,1', { what: 'two children' });
  expect(await listRuns(client)).toContainEqual({ id: 'tree', state: 'running' });
  expect(await client.stop('tree')).toEqual({ result: 'group_killed' });
  expect((await collect({ client, id: 'tree', events })).last).toMatchObject({ code: 143 });
  expect(counts()).toEqual([0, 1]);
  for (const line of findMarked(outside)) execFileSync('kill', [line.split(' ')[0] ?? '']);
});
