import { expect, test } from 'vitest';
import { WindlassError } from '../../shared/errors/errors.ts';
import { waitFor } from '../../test/harness/wait-for.ts';
import { OutputRoom } from './output-room.ts';

const MIB = 1 << 20;
const room = async () => {};

/** A disk that is full when it is told to be. */
function makeDisk() {
  let isFull = false;
  let looks = 0;
  return {
    fill: (full: boolean) => {
      isFull = full;
    },
    looks: () => looks,
    assertFree: async () => {
      looks++;
      if (isFull) throw new WindlassError('insufficient_storage', { detail: 'The disk is full.' });
    },
  };
}

const openOn = (disk: ReturnType<typeof makeDisk>) =>
  OutputRoom.open({ assertUser: room, assertDisk: disk.assertFree });

test('says at once whether there is room, so that no piece waits while another overtakes it', async () => {
  const disk = makeDisk();
  const opened = await openOn(disk);
  for (let n = 0; n < 64; n++) expect(opened.admit(MIB)).toBeUndefined();
  expect(disk.looks()).toBe(1 + 64 / 4);
});

test('takes nothing on a disk that is full from the start', async () => {
  const disk = makeDisk();
  disk.fill(true);
  const opened = await openOn(disk);
  expect(() => opened.admit(1)).toThrow('The disk is full.');
});

test('takes nothing more after a shortage, though there is room again', async () => {
  const disk = makeDisk();
  const opened = await openOn(disk);
  disk.fill(true);
  opened.admit(4 * MIB);
  await waitFor(() => opened.isDiskShort, { what: 'the look' });
  disk.fill(false);
  for (let n = 0; n < 3; n++) expect(() => opened.admit(4 * MIB)).toThrow('The disk is full.');
});

test('leaves a disk that cannot be asked to what stores', async () => {
  const opened = await OutputRoom.open({
    assertUser: room,
    assertDisk: () => Promise.reject(new Error('no such disk')),
  });
  expect(opened.admit(1)).toBeUndefined();
});

test('tells a disk that is short from a user who has stored too much', async () => {
  const refused = (opened: OutputRoom) => {
    try {
      opened.admit(1);
    } catch (error) {
      return opened.isForDisk(error);
    }
    return undefined;
  };
  const full = makeDisk();
  full.fill(true);
  expect(refused(await openOn(full))).toBe(true);
  const limited = await OutputRoom.open({ assertUser: full.assertFree, assertDisk: room });
  expect([refused(limited), limited.isDiskShort]).toEqual([false, false]);
  const store = new WindlassError('insufficient_storage', { detail: 'The store is full.' });
  expect([limited.isForDisk(store), limited.isForDisk(new Error('any'))]).toEqual([true, false]);
});
