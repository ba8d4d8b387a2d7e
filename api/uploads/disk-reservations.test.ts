import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, expect, test } from 'vitest';
import { FileStore } from '../../shared/storage/file-store.ts';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import { type DiskReservation, DiskReservations, ReservedPartMeter } from './disk-reservations.ts';
import { storeMetered } from './store-part.ts';

const directory = makeTempDir('disk-room');
afterAll(() => directory.remove());

const MIB = 1 << 20;
const FULL = { code: 'insufficient_storage', hint: expect.stringContaining('LIMIT_FREE_BYTES') };
/** A disk with this number of free bytes, of which 100 must stay free. */
const openDisk = (free: number) => {
  const disk = { free };
  return { disk, room: new DiskReservations({ freeBytes: async () => disk.free }, 100) };
};

test('announced bytes count until they arrive or the body fails', async () => {
  const { disk, room } = openDisk(1_100);
  const first = await room.reserve(600);
  await expect(room.reserve(401)).rejects.toMatchObject(FULL);
  await room.check(400);
  first.consume(500);
  disk.free -= 500;
  await room.check(400);
  await expect(room.check(401)).rejects.toMatchObject(FULL);
  first.release();
  await room.check(500);
  // More bytes may arrive than announced: the overhead of a form is not known exactly.
  const second = await room.reserve(500);
  second.consume(600);
  second.release();
  await room.check(500);
});

test('of two concurrent bodies one finds the space', async () => {
  const { room } = openDisk(1_100);
  const taken = await Promise.allSettled([room.reserve(600), room.reserve(600)]);
  expect(taken.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
});

test('reserves anything without a limit, or when the store is a server', async () => {
  const unlimited = new DiskReservations({ freeBytes: async () => 0 }, 0);
  const onServer = new DiskReservations({ freeBytes: async () => undefined }, 100);
  for (const room of [unlimited, onServer])
    await expect(room.reserve(2 ** 40)).resolves.toHaveProperty('release');
});

test('a body keeps no more than 64 MiB from others before its bytes arrive, and is checked as they do', async () => {
  const { disk, room } = openDisk(200 * MIB + 100);
  const announced = await room.reserve(190 * MIB);
  const other = await room.reserve(136 * MIB);
  await expect(room.check(72 * MIB + 1)).rejects.toMatchObject(FULL);
  const send = async (body: DiskReservation, mebibytes: number) => {
    for (let at = 0; at < mebibytes; at += 8) {
      await body.consume(8 * MIB);
      disk.free -= 8 * MIB;
    }
  };
  await send(other, 136);
  other.release();
  await expect(send(announced, 190)).rejects.toMatchObject(FULL);
  announced.release();
  disk.free = 190 * MIB + 100;
  await room.check(190 * MIB);
});

test('a body of unknown length fails when the disk is full, and nothing is stored', async () => {
  const { disk, room } = openDisk(200 * MIB);
  await room.reserve(100 * MIB);
  const store = new FileStore(directory.path);
  const send = async (reservation: DiskReservation, pieces: number) => {
    const meter = new ReservedPartMeter({ reservation });
    const piece = Buffer.alloc(MIB);
    Readable.from(
      (function* () {
        for (let n = 0; n < pieces; n++) {
          disk.free -= MIB;
          yield piece;
        }
      })(),
    ).pipe(meter);
    return storeMetered(store, 'uploads/one/key', { meter });
  };
  // Reservations of others stay valid.
  await expect(send(await room.reserve(undefined), 150)).rejects.toMatchObject(FULL);
  expect(disk.free).toBeGreaterThan(50 * MIB);
  expect(readdirSync(join(directory.path, 'incoming'))).toEqual([]);
  disk.free = 200 * MIB;
  expect((await send(await room.reserve(undefined), 40)).size).toBe(40 * MIB);
});
