import { createHash, randomBytes } from 'node:crypto';
import { createWriteStream, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { signalProcess } from '../../servers/processes.ts';
import { isFull } from '../faults/settings.ts';
import { makeKeystream, writeKeystreamProgram } from '../harness/hosts/keystream.ts';
import {
  isEnded,
  type Job,
  launchAsync,
  openSession,
  readOutput,
  waitForEnd,
} from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeForms } from '../harness/stacks/forms.ts';
import { expectFlat, missingMemory, watchMemory } from '../harness/stacks/memory.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const MIB = 1 << 20;
/** Bytes of output: more than a process may take (memory.ts), and some, so that it is no multiple of anything. */
const OUTPUT = (isFull ? 10_000_000_000 : 300_000_000) + 12_345;
const PATIENCE_MS = isFull ? 60 * 60_000 : 300_000;
/** Far below what is sent, so that a host that makes more than is stored has to wait. */
const SPOOL_LIMIT = (isFull ? 256 : 32) * MIB;
/** The pumps of both streams see the limit when a segment is full, and have the next one's first bytes by then. */
const SPOOL_SLACK = 24 * MIB;

describeForms(missingMemory() ?? missingPrograms('sshd'), 'output of any size', form => {
  const { stack, client, sshd } = useRemoteStack(form, {
    env: { LIMIT_SPOOL_BYTES: String(SPOOL_LIMIT) },
  });

  // The object store differs by form. What comes before it is the same, and tested on the embedded form.
  const isWhole = form.name === 'embedded' || process.env.TEST_FORMS === 'both';

  for (const agent of isWhole ? [true, false] : [true]) {
    test(`${Math.round(OUTPUT / 1e6)} MB of bytes come whole ${agent ? 'with' : 'without'} an agent, at flat memory and within the spool limit`, {
      timeout: 2 * PATIENCE_MS,
    }, async () => {
      const print = writeKeystreamProgram(sshd.home);
      const key = randomBytes(8).toString('hex');
      const sid = await openSession(client, sshd, { agent });
      const memory = watchMemory(stack);
      const { id } = await launchAsync(client, sid, print(key, OUTPUT));
      let spooled = 0;
      const job = await waitFor(
        async () => {
          spooled = Math.max(spooled, sizeOfSpool(sshd.home));
          const found = await client.get<Job>(`/api/jobs/${id}`);
          return isEnded(found) ? found : undefined;
        },
        { what: 'the command to end', timeoutMs: PATIENCE_MS, intervalMs: 100 },
      );
      expect(job).toMatchObject({ state: 'succeeded', result: { returncode: 0 } });
      expect(await digestOf(await client.fetch(`/api/jobs/${id}/output`))).toEqual(
        await digestOfKeystream(key, OUTPUT),
      );
      expectFlat(memory.growth());
      expect(spooled).toBeLessThan(SPOOL_LIMIT + SPOOL_SLACK);
      if (agent) expect(spooled).toBeGreaterThan(0);
    });
  }

  if (!isWhole) return;

  test('a host whose output nobody takes keeps as much as the limit, and the command waits', {
    timeout: PATIENCE_MS,
  }, async () => {
    const print = writeKeystreamProgram(sshd.home);
    const key = randomBytes(8).toString('hex');
    const length = 3 * SPOOL_LIMIT;
    const sid = await openSession(client, sshd);
    // Begun, so that it is only the spool that nobody empties.
    const { id } = await launchAsync(client, sid, `echo; ${print(key, length)}`);
    await waitFor(async () => (await readOutput(client, id)).length > 0, { what: 'its output' });
    const stopped = stack.kill('windlass-worker', 'SIGSTOP');
    try {
      let before = -1;
      let looks = 0;
      await waitFor(
        () => {
          const size = sizeOfSpool(sshd.home);
          looks = size === before ? looks + 1 : 0;
          before = size;
          return size >= SPOOL_LIMIT && looks >= 20;
        },
        { what: 'the command to wait', timeoutMs: 60_000, intervalMs: 100 },
      );
      expect(before).toBeGreaterThanOrEqual(SPOOL_LIMIT);
      expect(before).toBeLessThan(SPOOL_LIMIT + SPOOL_SLACK);
    } finally {
      for (const pid of stopped) signalProcess(pid, 'SIGCONT');
    }
    expect(await waitForEnd(client, id, PATIENCE_MS)).toMatchObject({ state: 'succeeded' });
    const output = await client.fetch(`/api/jobs/${id}/output?offset=1`);
    expect(await digestOf(output)).toEqual(await digestOfKeystream(key, length));
  });

  test('a large file of the host comes whole, at flat memory', {
    timeout: PATIENCE_MS,
  }, async () => {
    const key = randomBytes(8).toString('hex');
    const length = 300_000_000 + 12_345;
    const file = join(sshd.home, 'large.bin');
    await pipeline(makeKeystream(key, length), createWriteStream(file));
    const sid = await openSession(client, sshd);
    const memory = watchMemory(stack);
    const answer = await client.fetch(`/api/remotes/${sid}/file${file}`);
    expect(answer.headers.get('Content-Length')).toBe(String(length));
    expect(await digestOf(answer)).toEqual(await digestOfKeystream(key, length));
    expectFlat(memory.growth());
  });
});

interface Digest {
  bytes: number;
  sha256: string;
}

async function digestOf(answer: Response): Promise<Digest> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const piece of answer.body ?? []) {
    hash.update(piece as Uint8Array);
    bytes += (piece as Uint8Array).length;
  }
  return { bytes, sha256: hash.digest('hex') };
}

async function digestOfKeystream(key: string, length: number): Promise<Digest> {
  const hash = createHash('sha256');
  for (const bytes of makeKeystream(key, length)) {
    hash.update(bytes);
    // A connection that the service closes meanwhile must be heard of before it is used again.
    await setImmediate();
  }
  return { bytes: length, sha256: hash.digest('hex') };
}

/** Bytes of all files in the agent's folder of runs; those that go meanwhile count no more. */
function sizeOfSpool(home: string): number {
  const runs = join(home, '.windlass', 'runs');
  return listFolder(runs)
    .flatMap(run => listFolder(join(runs, run)).map(name => join(runs, run, name)))
    .reduce((sum, path) => sum + (statSync(path, { throwIfNoEntry: false })?.size ?? 0), 0);
}

function listFolder(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
