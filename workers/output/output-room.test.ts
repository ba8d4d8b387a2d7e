import { expect, test } from 'vitest';
import { WindlassError } from '../../shared/errors/errors.ts';
import { waitFor } from '../../test/harness/wait-for.ts';
import { OutputRoom } from './output-room.ts';

const MIB = 1 << 20;
const room = async () => {};

/** A disk, or a user's limit, that is full when it is told to be. */
function makeSpace() {
  let isFull = false;
  let looks = 0;
  return {
    fill: (full: boolean) => {
      isFull = full;
    },
    looks: () => looks,
    assertFree: async () => {
      looks++;
      if (isFull) throw new WindlassError('insufficient_storage', { detail: 'It is full.' });
    },
  };
}

const openOn = (disk: ReturnType<typeof makeSpace>, waitsForDisk: boolean) =>
  OutputRoom.open({ assertUser: room, assertDisk: disk.assertFree, waitsForDisk });

test('says at once whether there is room, so that no piece waits while another overtakes it', async () => {
  const disk = makeSpace();
  const opened = await openOn(disk, false);
  for (let n = 0; n < 64; n++) expect(opened.admit(MIB)).toBeUndefined();
  expect(disk.looks()).toBe(1 + 64 / 4);
});

test('takes nothing on a disk that is full from the start', async () => {
  const disk = makeSpace();
  disk.fill(true);
  const opened = await openOn(disk, false);
  expect(() => opened.admit(1)).toThrow('It is full.');
});

test('takes nothing more after a refusal, though there is room again', async () => {
  for (const waitsForDisk of [true, false]) {
    const space = makeSpace();
    const opened = await OutputRoom.open({
      assertUser: waitsForDisk ? space.assertFree : room,
      assertDisk: waitsForDisk ? room : space.assertFree,
      waitsForDisk,
    });
    space.fill(true);
    opened.admit(4 * MIB);
    const isRefused = () => {
      try {
        opened.admit(0);
        return false;
      } catch {
        return true;
      }
    };
    await waitFor(isRefused, { what: 'the look' });
    space.fill(false);
    for (let n = 0; n < 3; n++) expect(() => opened.admit(4 * MIB)).toThrow('It is full.');
    expect(opened.shortage).toBeUndefined();
  }
});

test('who waits for the disk is refused nothing, and told to wait once a little more was taken', async () => {
  const disk = makeSpace();
  const opened = await openOn(disk, true);
  disk.fill(true);
  opened.admit(4 * MIB);
  await waitFor(() => opened.isDiskShort, { what: 'the look' });
  expect(opened.shortage).toBeUndefined();
  opened.admit(MIB / 4);
  expect(opened.shortage).toMatchObject({ code: 'insufficient_storage' });
  const attempt = new AbortController();
  const ended = opened.awaitDisk(attempt.signal);
  attempt.abort();
  await ended;
  expect(opened.shortage).toBeDefined();
  const waited = opened.awaitDisk(new AbortController().signal);
  disk.fill(false);
  await waited;
  expect([opened.isDiskShort, opened.shortage]).toEqual([false, undefined]);
  disk.fill(true);
  opened.admit(4 * MIB);
  await waitFor(() => opened.isDiskShort, { what: 'the next look' });
  expect(opened.shortage).toBeUndefined();
});

test('leaves a disk that cannot be asked to what stores', async () => {
  const assertDisk = () => Promise.reject(new Error('no such disk'));
  const opened = await OutputRoom.open({ assertUser: room, assertDisk, waitsForDisk: false });
  expect(opened.admit(1)).toBeUndefined();
});
