import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, expect, test } from 'vitest';
import { findProgram } from '../../../scripts/programs.ts';
import { describeUnless, missingPrograms } from '../../../test/harness/skip.ts';
import { waitFor } from '../../../test/harness/wait-for.ts';
import { AgentHarness, collect, processesOf } from './agent-harness.ts';
import type { LocalExec } from './local-exec.ts';

const harness = new AgentHarness();
afterEach(() => harness.close());
afterAll(() => harness.clean());

/** The process that waits to become the first command of this host's first agent. */
function findPreparedBody(host: LocalExec): number | undefined {
  const runs = join(host.account.home, '.windlass/runs');
  const [name] = readdirSync(runs);
  if (!name || !existsSync(join(runs, name, 'ready'))) return undefined;
  return Number.parseInt(readFileSync(join(runs, name, 'body'), 'utf8'), 10);
}

for (const name of ['dash', 'bash', 'busybox', 'ksh']) {
  const shell = findProgram(name) ?? '';
  const needed = (['busybox', 'ksh'] as const).filter(program => program === name);
  describeUnless(missingPrograms(...needed), `agents that race, read by ${name}`, () => {
    test('whoever comes too late hears that the run is another one’s, also when that has ended', async () => {
      const host = harness.makeHost(shell);
      const late = await harness.connect(host);
      const body = await waitFor(() => findPreparedBody(host), { what: 'an attempt' });
      process.kill(body, 'SIGSTOP');
      const id = harness.newName();
      const command = 'echo ran >>ledger; echo output';
      const request = () => ({ id, token: harness.newName(), command });
      const outcome = collect({ client: late, id, events: late.run(request()) });
      const first = await harness.connect(host);
      const ran = await collect({ client: first, id, events: first.run(request()) });
      expect(ran.last).toMatchObject({ type: 'ended', code: 0, stdoutBytes: 7 });
      expect((await outcome).types).toEqual(['taken']);
      process.kill(body, 'SIGCONT');
      await harness.close();
      await waitFor(() => processesOf(host).length === 0, { what: 'the end of every process' });
      expect(readFileSync(join(host.account.home, 'ledger'), 'utf8')).toBe('ran\n');
    });
  });
}
