import { expect, test } from 'vitest';
import { WindlassError } from '../../shared/errors/errors.ts';
import { waitFor } from '../../test/harness/wait-for.ts';
import { OutputRoom } from './output-room.ts';

const MIB = 1 << 20;

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

test('says at once whether there is room, so that no piece waits while another overtakes it', async () => {
  const disk = makeDisk();
  const room = await OutputRoom.open(disk.assertFree);
  for (let n = 0; n < 64; n++) expect(room.admit(MIB)).toBeUndefined();
  expect(disk.looks()).toBe(1 + 64 / 4);
});

test('takes nothing on a disk that is full from the start', async () => {
  const disk = makeDisk();
  disk.fill(true);
  const room = await OutputRoom.open(disk.assertFree);
  expect(() => room.admit(1)).toThrow('The disk is full.');
});

test('takes nothing more after a shortage, though there is room again', async () => {
  const disk = makeDisk();
  const room = await OutputRoom.open(disk.assertFree);
  disk.fill(true);
  room.admit(4 * MIB);
  await waitFor(() => disk.looks() === 2, { what: 'the look' });
  disk.fill(false);
  for (let n = 0; n < 3; n++) expect(() => room.admit(4 * MIB)).toThrow('The disk is full.');
});

test('leaves a disk that cannot be asked to what stores', async () => {
  const room = await OutputRoom.open(() => Promise.reject(new Error('no such disk')));
  expect(room.admit(1)).toBeUndefined();
});
