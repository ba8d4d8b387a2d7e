import { spawn } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { makeTempDir, type TempDir } from '../../test/harness/files/temp-dir.ts';
import { type DataDirLock, lockDataDir } from './lock.ts';

const compiled = new URL('../../dist/cli/data-dir/lock.js', import.meta.url).href;
let scratch: TempDir;
let dataDir: string;

beforeEach(() => {
  scratch = makeTempDir('lock');
  dataDir = scratch.path;
});

afterEach(() => scratch.remove());

test('has one owner, and the next one after its release', async () => {
  const first = await lockDataDir({ dataDir });
  await expect(lockDataDir({ dataDir })).rejects.toThrow(
    `Another Windlass (process ${process.pid}) is running on ${dataDir}.`,
  );
  await first.release();
  const second = await lockDataDir({ dataDir });
  await second.release();
  expect(fs.readdirSync(dataDir)).toEqual([]);
});

test('is acquired by exactly one of many concurrent requests', async () => {
  await leaveStale();
  const outcomes = await Promise.allSettled(
    Array.from({ length: 20 }, () => lockDataDir({ dataDir })),
  );
  const locks = outcomes.flatMap(one => (one.status === 'fulfilled' ? [one.value] : []));
  expect(locks).toHaveLength(1);
  await locks[0]?.release();
});

/** Another process that has the lock. */
async function spawnOwner() {
  const program = `const { lockDataDir } = await import(${JSON.stringify(compiled)});
    await lockDataDir({ dataDir: ${JSON.stringify(dataDir)} });
    console.log('locked'); setInterval(() => {}, 1000);`;
  const owner = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(owner.stdout, 'data');
  return owner;
}

test('of a killed process can be acquired at once', async () => {
  const owner = await spawnOwner();
  await expect(lockDataDir({ dataDir })).rejects.toThrow(`process ${owner.pid}`);
  owner.kill('SIGKILL');
  await once(owner, 'exit');
  const lock = await lockDataDir({ dataDir });
  await lock.release();
});

test('of a frozen process cannot be acquired', async () => {
  const owner = await spawnOwner();
  owner.kill('SIGSTOP');
  await expect(lockDataDir({ dataDir })).rejects.toThrow(`process ${owner.pid}`);
  owner.kill('SIGKILL');
  await once(owner, 'exit');
});

test('is awaited while its owner is stopping, until the signal', async () => {
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

test('works in directories with long paths', async () => {
  dataDir = join(scratch.path, 'd'.repeat(120), 'e'.repeat(120));
  fs.mkdirSync(dataDir, { recursive: true });
  const first = await lockDataDir({ dataDir });
  await expect(lockDataDir({ dataDir })).rejects.toThrow(/is running on/);
  await first.release();
});

/** Leaves the lock of a killed process. */
async function leaveStale(): Promise<void> {
  const path = join(dataDir, 'lock', '1.abcdef');
  fs.mkdirSync(join(dataDir, 'lock'));
  const server = createServer().listen(`${path}.tmp`);
  await once(server, 'listening');
  fs.renameSync(`${path}.tmp`, path);
  server.close();
  await once(server, 'close');
}
