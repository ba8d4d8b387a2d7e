import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { findProgram } from '../../scripts/programs.ts';
import {
  AgentHarness,
  collect,
  FAMILY,
  follow,
  runDirectory,
} from '../../test/harness/agent-harness.ts';
import type { LocalExec } from '../../test/harness/local-exec.ts';
import { waitFor } from '../../test/harness/wait-for.ts';
import { loadAgentFile } from './agent-file.ts';

const harness = new AgentHarness();
afterEach(() => harness.close());
afterAll(() => harness.clean());

const SHELLS = FAMILY.map(name => findProgram(name)).filter(path => path !== undefined);

const baseOf = (host: LocalExec) => join(host.account.home, '.windlass');

/** A run that is going on until there is a file `go`. */
async function startWaiting(host: LocalExec) {
  const client = await harness.connect(host);
  const id = harness.newName();
  const command = 'while ! test -e go; do sleep 0.02; done; echo done; exit 3';
  const events = client.run({ id, token: 'one', command });
  expect(await events.next()).toMatchObject({ value: { type: 'running' } });
  return { client, id, run: runDirectory(host, id) };
}

/** How long the home is away, in milliseconds. */
const OUTAGE_MS = 400;

const letEnd = (host: LocalExec) => writeFileSync(join(host.account.home, 'go'), '');

describe.each(SHELLS)('what of the home is away for a moment is not missing, under %s', shell => {
  test('a sweep keeps the fence of a run whose directory it does not find', async () => {
    const host = harness.makeHost(shell);
    const { client, id } = await startWaiting(host);
    client.close();
    await client.closed;
    renameSync(join(baseOf(host), 'runs'), join(baseOf(host), 'away'));
    const meanwhile = await harness.connect(host);
    meanwhile.close();
    await meanwhile.closed; // after its sweep
    rmSync(join(baseOf(host), 'runs'), { recursive: true });
    renameSync(join(baseOf(host), 'away'), join(baseOf(host), 'runs'));
    letEnd(host);
    expect((await follow(await harness.connect(host), id)).last).toMatchObject({ code: 3 });
  });

  test('a command that ends meanwhile has its end recorded, and keeps its output', async () => {
    const host = harness.makeHost(shell);
    const { client, id, run } = await startWaiting(host);
    client.close();
    await client.closed;
    renameSync(join(baseOf(host), 'started'), join(baseOf(host), 'away'));
    letEnd(host);
    await waitFor(() => existsSync(join(run, 'exit.3')), { what: 'the end of the command' });
    await delay(OUTAGE_MS);
    renameSync(join(baseOf(host), 'away'), join(baseOf(host), 'started'));
    const { stdout, last } = await follow(await harness.connect(host), id);
    expect([stdout.toString(), last]).toEqual(['done\n', expect.objectContaining({ code: 3 })]);
  });

  test('a run whose directory comes back is not lost', async () => {
    const host = harness.makeHost(shell);
    const { id, run } = await startWaiting(host);
    const other = await harness.connect(host);
    renameSync(run, `${run}.away`);
    const followed = follow(other, id);
    await delay(OUTAGE_MS);
    renameSync(`${run}.away`, run);
    letEnd(host);
    expect((await followed).last).toMatchObject({ code: 3 });
  });

  test('a command that did not reach the host whole is not started', async () => {
    const host = harness.makeHost(shell, { text: 'echo from the account' });
    const { name, content: bytes } = loadAgentFile();
    const content = bytes.toString();
    const written = 'printf \'text=%s\\nwhole=y\\n\' "$5" >"$dir/cmd"';
    expect(content.split(written).length).toBe(2);
    mkdirSync(baseOf(host), { mode: 0o700 });
    writeFileSync(
      join(baseOf(host), name),
      content.replace(written, () => 'true >"$dir/cmd"'),
    );
    const client = await harness.connect(host, { shell });
    const events = client.run({ id: 'once', token: 'one', command: 'echo right' });
    await expect(collect({ client, id: 'once', events })).rejects.toMatchObject({
      code: 'remote_disk_full',
    });
    expect(existsSync(join(baseOf(host), 'started/once'))).toBe(false);
  });
});
