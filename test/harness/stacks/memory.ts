import { readFileSync, writeFileSync } from 'node:fs';
import { expect } from 'vitest';
import type { SkipReason } from '../skip.ts';
import type { Stack } from './stack.ts';

const MIB = 1 << 20;
/**
 * How much more than at rest a process may take to pass on any amount: buffers, and uncollected garbage. What a test
 * passes on must be larger, so that a process which holds all of it is noticed.
 */
const API_BYTES = 160 * MIB;
const WORKER_BYTES = 256 * MIB;

/** Bytes that each process took more at its peak since the watch began than at rest, by name and pid. */
export interface MemoryWatch {
  growth(): Record<string, number>;
}

/** What each process took when it was watched for the first time: memory that it has from earlier work counts. */
const atRest = new Map<number, number>();

/** Watches what the API processes and the workers of a stack hold of the machine's memory (Linux only). */
export function watchMemory(stack: Stack): MemoryWatch {
  const watched = stack
    .pids()
    .filter(({ name }) => name === 'windlass-api' || name.startsWith('windlass-worker'))
    .map(({ name, pid }) => {
      // proc(5): from here on VmHWM is the peak since now.
      writeFileSync(`/proc/${pid}/clear_refs`, '5');
      const before = atRest.get(pid) ?? readStatus(pid, 'VmRSS');
      atRest.set(pid, before);
      return { name, pid, before };
    });
  return {
    growth: () =>
      Object.fromEntries(
        watched.map(({ name, pid, before }) => [
          `${name} ${pid}`,
          readStatus(pid, 'VmHWM') - before,
        ]),
      ),
  };
}

/** Throws where the process is gone: one that was started anew has forgotten its peak. */
function readStatus(pid: number, field: string): number {
  const line = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(
    readFileSync(`/proc/${pid}/status`, 'utf8'),
  );
  if (!line) throw new Error(`${pid} has no ${field}.`);
  return Number(line[1]) * 1_024;
}

/** A process that passes all of it on must hold but little of it. */
export function expectFlat(growth: Record<string, number>): void {
  const large = Object.entries(growth).filter(
    ([name, bytes]) => bytes >= (name.startsWith('windlass-api') ? API_BYTES : WORKER_BYTES),
  );
  expect(large).toEqual([]);
}

/** Undefined where watchMemory() can be used. */
export function missingMemory(): SkipReason | undefined {
  if (process.platform === 'linux') return undefined;
  return { reason: 'needs Linux, to read the memory of processes', obtainable: false };
}
