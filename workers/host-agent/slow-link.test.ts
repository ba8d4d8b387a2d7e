import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Transform } from 'node:stream';
import { expect, test } from 'vitest';
import { findProgram } from '../../scripts/programs.ts';
import { useAgentHarness } from '../../test/harness/hosts/agent-harness.ts';
import type { LocalExec } from '../../test/harness/hosts/local-exec.ts';
import { describeUnless, missingPrograms } from '../../test/harness/skip.ts';
import { waitFor } from '../../test/harness/wait-for.ts';
import type { AgentClient } from './client.ts';
import type { RemoteExec } from './exec-channel.ts';
import type { RunEvent } from './protocol/run-event.ts';

const MIB = 1 << 20;
const RATE = 2_000_000;
/** Bytes that the link may carry before an answer; not a time, because the machine may be busy. */
const PATIENCE = 20 * RATE;

const harness = useAgentHarness();

/** The host behind a link that carries RATE bytes a second from the host, once it is made slow. */
function slowDown(host: LocalExec) {
  const link = { isSlow: false, bytes: 0 };
  const exec: RemoteExec['exec'] = async (command, signal) => {
    const channel = await host.exec(command, signal);
    let passedAt = 0;
    const stdout = new Transform({
      highWaterMark: 65_536,
      transform(chunk: Buffer, _encoding, pass) {
        link.bytes += chunk.length;
        if (!link.isSlow) return pass(null, chunk);
        const now = performance.now();
        passedAt = Math.max(now, passedAt) + (chunk.length / RATE) * 1_000;
        setTimeout(pass, passedAt - now, null, chunk);
      },
    });
    return { ...channel, stdout: channel.stdout.pipe(stdout) };
  };
  return { link, exec };
}

/** Follows and acknowledges an endless run. */
function readOn(client: AgentClient, id: string, command: string) {
  const seen = { bytes: 0, text: '', types: [] as string[] };
  const read = async (events: AsyncIterable<RunEvent>) => {
    for await (const event of events) {
      if (event.type !== 'output') {
        seen.types.push(event.type);
        continue;
      }
      seen.bytes += event.bytes.length;
      seen.text = event.bytes.toString().slice(-100);
      client.ack(id, seen.bytes, 0);
    }
  };
  const done = read(client.run({ id, token: id, command })).catch(() => {});
  return { seen, done };
}

for (const name of ['dash', 'bash', 'busybox', 'ksh', 'zsh']) {
  const shell = findProgram(name) ?? '';
  const needed = (['busybox', 'ksh', 'zsh'] as const).filter(program => program === name);
  describeUnless(missingPrograms(...needed), `over a slow link, run by ${name}`, () => {
    test('an agent delivers answers and short lines beside nine endless outputs', async () => {
      const host = harness.makeHost(shell);
      const { link, exec } = slowDown(host);
      const client = await harness.connect({ exec, account: host.account } as LocalExec, {
        spoolLimitBytes: 16 * MIB,
      });
      const command = 'echo begun; while ! test -e go; do sleep 0.05; done; echo gone; sleep 300';
      const small = readOn(client, 'small', command);
      await waitFor(() => small.seen.text === 'begun\n', { what: 'the small one to begin' });
      link.isSlow = true;
      const bulk = Array.from({ length: 9 }, (_, n) =>
        readOn(client, `bulk-${n}`, 'cat /dev/zero'),
      );
      try {
        await waitFor(() => bulk.every(({ seen }) => seen.bytes > 100_000), {
          what: 'each to be heard',
          timeoutMs: 60_000,
        });
        let before = link.bytes;
        const heardWithin = () => {
          const passed = link.bytes - before;
          before = link.bytes;
          return passed;
        };
        writeFileSync(join(host.account.home, 'go'), '');
        await waitFor(() => small.seen.text.endsWith('gone\n'), {
          what: 'the line',
          timeoutMs: 60_000,
        });
        expect(heardWithin()).toBeLessThan(PATIENCE);
        await client.ping();
        expect(heardWithin()).toBeLessThan(PATIENCE);
        expect(await client.stop('small')).toEqual({ result: 'killed' });
        await small.done;
        expect(heardWithin()).toBeLessThan(PATIENCE);
        expect(small.seen.types).toEqual(['running', 'ended']);
      } finally {
        link.isSlow = false;
        await Promise.all(bulk.map((_, n) => client.stop(`bulk-${n}`)));
      }
      await Promise.all(bulk.map(({ done }) => done));
      for (const { seen } of bulk) expect(seen.types).toEqual(['running', 'ended']);
    });
  });
}
