import { spawn } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { makeTempDir, type TempDir } from '../test/harness/temp-dir.ts';
import { type DataDirLock, lockDataDir } from './data-dir-lock.ts';

const compiled = new URL('../dist/cli/data-dir-lock.js', import.meta.url).href;
let scratch: TempDir;
let dataDir: string;

beforeEach(() => {
  scratch = makeTempDir('lock');
  dataDir = scratch.path;
});

afterEach(() => scratch.remove());

test('is held by one, and by the next once it is given back', async () => {
  const first = await lockDataDir({ dataDir });
  await expect(lockDataDir({ dataDir })).rejects.toThrow(
    `Another Windlass (process ${process.pid}) is running on ${dataDir}.`,
  );
  await first.release();
  const second = await lockDataDir({ dataDir });
  await second.release();
  expect(fs.readdirSync(dataDir)).toEqual([]);
});

test('is got by exactly one of many who come at once', async () => {
  await leaveStale();
  const outcomes = await Promise.allSettled(
    Array.from({ length: 20 }, () => lockDataDir({ dataDir })),
  );
  const held = outcomes.flatMap(one => (one.status === 'fulfilled' ? [one.value] : []));
  expect(held).toHaveLength(1);
  await held[0]?.release();
});

test('of a killed process is free at once', async () => {
  const program = `const { lockDataDir } = await import(${JSON.stringify(compiled)});
    await lockDataDir({ dataDir: ${JSON.stringify(dataDir)} });
    console.log('held'); setInterval(() => {}, 1000);`;
  const holder = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(holder.stdout, 'data');
  await expect(lockDataDir({ dataDir })).rejects.toThrow(`process ${holder.pid}`);
  holder.kill('SIGKILL');
  await once(holder, 'exit');
  const lock = await lockDataDir({ dataDir });
  await lock.release();
});

test('of a frozen process is held', async () => {
  const program = `const { lockDataDir } = await import(${JSON.stringify(compiled)});
    await lockDataDir({ dataDir: ${JSON.stringify(dataDir)} });
    console.log('held'); setInterval(() => {}, 1000);`;
  const holder = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(holder.stdout, 'data');
  holder.kill('SIGSTOP');
  await expect(lockDataDir({ dataDir })).rejects.toThrow(`process ${holder.pid}`);
  holder.kill('SIGKILL');
  await once(holder, 'exit');
});

test('is waited for while its holder is stopping, until the wait is given up', async () => {
  const first = await lockDataDir({ dataDir });
  first.announceStop();
  const impatient = new AbortController();
  const given = lockDataDir({ dataDir, signal: impatient.signal });
  let second: DataDirLock | undefined;
  const patient = lockDataDir({ dataDir }).then(lock => {
    second = lock;
  });
  impatient.abort();
  await expect(given).rejects.toThrow(/abort/i);
  expect(second).toBeUndefined();
  await first.release();
  await patient;
  await second?.release();
});

test('fits into directories of any length', async () => {
  dataDir = join(scratch.path, 'd'.repeat(120), 'e'.repeat(120));
  fs.mkdirSync(dataDir, { recursive: true });
  const first = await lockDataDir({ dataDir });
  await expect(lockDataDir({ dataDir })).rejects.toThrow(/is running on/);
  await first.release();
});

/** What a process leaves that was killed while it held the lock. */
async function leaveStale(): Promise<void> {
  const path = join(dataDir, 'lock', '1.abcdef');
  fs.mkdirSync(join(dataDir, 'lock'));
  const server = createServer().listen(`${path}.tmp`);
  await once(server, 'listening');
  fs.renameSync(`${path}.tmp`, path);
  server.close();
  await once(server, 'close');
}
