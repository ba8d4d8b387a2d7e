import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { type Job, launchAsync, readOutput, waitForEnd } from '../harness/hosts/remote.ts';
import { waitFor } from '../harness/wait-for.ts';
import type { FaultHost, RunningStack } from './fault-host.ts';

/** A command that counts on both streams and keeps a ledger on its host: what it printed, and that it ran once, is known. */
export interface Count {
  /** The id of its job. */
  id: string;
  lines: number;
  ledger: string;
}

const PAUSE_SECONDS = 0.2;

function countingCommand({ lines, ledger }: Omit<Count, 'id'>): string {
  return `i=1; while [ $i -le ${lines} ]; do echo "line $i"; echo "error $i" >&2; echo $i >>"$HOME/${ledger}"; i=$((i+1)); sleep ${PAUSE_SECONDS}; done`;
}

const numbered = (prefix: string, lines: number) =>
  Array.from({ length: lines }, (_, i) => `${prefix}${i + 1}\n`).join('');

/** Starts commands that run for some seconds each and waits for none of them. */
export async function launchCounts(
  service: RunningStack,
  sid: string,
  options: { commands: number; seconds: number; onAnswer?: (response: Response) => void },
): Promise<Count[]> {
  const { commands, seconds, onAnswer } = options;
  const lines = Math.ceil(seconds / PAUSE_SECONDS);
  return Promise.all(
    Array.from({ length: commands }, async () => {
      const count = { lines, ledger: `ledger-${randomUUID()}` };
      const { id } = await launchSurely(service, sid, countingCommand(count), onAnswer);
      return { ...count, id };
    }),
  );
}

/** Starts a command as a careful client does: the same request, with one key, until it is accepted. */
export async function launchSurely(
  { client }: RunningStack,
  sid: string,
  command: string,
  onAnswer: (response: Response) => void = () => {},
): Promise<Job> {
  const key = randomUUID();
  return waitFor(
    async () => {
      const response = await client.fetch('/api/remotes/launch', {
        method: 'POST',
        headers: { Prefer: 'respond-async', 'Idempotency-Key': key },
        body: JSON.stringify({ sid, command }),
        signal: AbortSignal.timeout(20_000),
      });
      onAnswer(response);
      const text = await response.text();
      if (response.status !== 202) throw new Error(`${response.status}: ${text}`);
      return JSON.parse(text) as Job;
    },
    { what: 'a launch to be accepted', timeoutMs: 60_000, intervalMs: 50 },
  );
}

/** Waits until each has begun to print. */
export async function waitForOutput({ client }: RunningStack, counts: Count[]): Promise<void> {
  for (const { id } of counts) {
    await waitFor(async () => (await readOutput(client, id)).length > 0, {
      what: `output of ${id}`,
      timeoutMs: 30_000,
    });
  }
}

/** Each succeeds, ran once, and not a byte of its output is missing, twice or elsewhere. */
export async function expectWhole(
  { client }: RunningStack,
  host: FaultHost,
  counts: Count[],
  timeoutMs = 90_000,
): Promise<void> {
  const until = performance.now() + timeoutMs;
  for (const { id, lines, ledger } of counts) {
    const left = Math.max(1_000, until - performance.now());
    expect(await waitForEnd(client, id, left)).toMatchObject({
      id,
      state: 'succeeded',
      result: { returncode: 0 },
    });
    expect([id, readLedger(host, ledger)]).toEqual([id, numbered('', lines)]);
    expect([id, String(await readOutput(client, id))]).toEqual([id, numbered('line ', lines)]);
    const errors = String(await readOutput(client, id, 'stderr'));
    expect([id, errors]).toEqual([id, numbered('error ', lines)]);
  }
}

export function readLedger({ sshd }: FaultHost, ledger: string): string {
  return readFileSync(join(sshd.home, ledger), 'utf8');
}

/** A command that counts on both streams until it is told to stop, and has begun to. */
export async function launchEndlessCount(
  { client }: RunningStack,
  { sshd }: FaultHost,
  sid: string,
): Promise<{ id: string; stop(): void; expectWhole(timeoutMs: number): Promise<void> }> {
  const ledger = `ledger-${randomUUID()}`;
  const { id } = await launchAsync(
    client,
    sid,
    `cd; i=0; while ! test -e ${ledger}.stop; do i=$((i+1)); echo $i; echo $i >&2; echo $i >>${ledger}; sleep ${PAUSE_SECONDS}; done; echo end >>${ledger}`,
  );
  await waitFor(async () => (await readOutput(client, id)).length > 0, {
    what: 'its output',
    timeoutMs: 20_000,
  });
  return {
    id,
    stop: () => writeFileSync(join(sshd.home, `${ledger}.stop`), ''),
    /** It has ended, had run once, and all that it printed is there, once. */
    async expectWhole(timeoutMs) {
      expect(await waitForEnd(client, id, timeoutMs)).toMatchObject({
        state: 'succeeded',
        error: null,
      });
      const printed = String(await readOutput(client, id));
      const lines = printed.trim().split('\n').map(Number);
      expect(lines).toEqual(lines.map((_, i) => i + 1));
      expect(String(await readOutput(client, id, 'stderr'))).toBe(printed);
      expect(readFileSync(join(sshd.home, ledger), 'utf8')).toBe(`${printed}end\n`);
    },
  };
}
