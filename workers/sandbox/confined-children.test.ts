import { readFileSync, readlinkSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest';
import { findDescendants, readEnvironment } from '../../servers/processes.ts';
import { drawFrame } from '../../test/harness/files/draw-frames.ts';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import { describeUnless } from '../../test/harness/skip.ts';
import { waitFor } from '../../test/harness/wait-for.ts';
import { runTableChild } from '../parsers/table/run-child.ts';
import { Decoder } from '../video/decoder.ts';
import { findIsolation } from './confine.ts';

const temp = makeTempDir('confined-children');
afterAll(() => temp.remove());

/** This process's own child of that title. */
const findChild = (title: string) =>
  waitFor(
    () => findDescendants([process.pid]).find(({ command }) => command.startsWith(title))?.pid,
    { what: title },
  );

function readLimits(pid: number) {
  const text = readFileSync(`/proc/${pid}/limits`, 'utf8');
  const of = (name: string) => Number(new RegExp(`^${name} +\\d+ +(\\d+)`, 'm').exec(text)?.[1]);
  return {
    addresses: of('Max address space'),
    seconds: of('Max cpu time'),
    fileBytes: of('Max file size'),
    files: of('Max open files'),
    core: of('Max core file size'),
  };
}

const upTo = (most: number) => expect.toSatisfy((is: number) => is <= most, `at most ${most}`);
/** What is reserved and never used. */
const RESERVED = 6 * 2 ** 30;

const skip =
  process.platform === 'linux' ? undefined : { reason: 'needs Linux', obtainable: false };

describeUnless(skip, 'a child that reads files', () => {
  beforeEach(() => {
    process.env.WINDLASS_CANARY = 'canary';
  });
  afterEach(() => {
    delete process.env.WINDLASS_CANARY;
  });

  /** What it has of this process: nothing of the environment but PATH, and no network where the system permits that. */
  async function expectApart(pid: number, names: string[]) {
    expect(Object.keys(readEnvironment(pid)).sort()).toEqual(['LC_ALL', ...names, 'PATH'].sort());
    const { hasNetwork, user } = await findIsolation();
    const network = (of: string) => readlinkSync(`/proc/${of}/ns/net`);
    expect(network(`${pid}`) === network('self')).toBe(hasNetwork);
    const [, uid] = /^Uid:\t(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    expect(Number(uid)).toBe(user?.uid ?? process.getuid?.());
  }

  test('the decoder of pictures is confined', async () => {
    const decoder = new Decoder();
    try {
      const frame = await drawFrame({ width: 64, height: 48, kind: 'png' });
      expect(await decoder.decode(frame, 'raw')).toMatchObject({ width: 64 });
      const pid = await findChild('windlass-child-decode');
      await expectApart(pid, ['VIPS_DISC_THRESHOLD']);
      expect(readLimits(pid)).toEqual({
        addresses: upTo(2 ** 30 + RESERVED),
        seconds: upTo(86_400),
        fileBytes: 0,
        files: upTo(256),
        core: 0,
      });
    } finally {
      decoder.close();
    }
  });

  test('the parser of tables is confined', async () => {
    const [memory, seconds] = [512 << 20, 30];
    const ending = new AbortController();
    const [input, output] = [join(temp.path, 'input'), join(temp.path, 'output')];
    const running = runTableChild(
      { kind: 'view', input, output, scratch: temp.path, columns: 1, sort: [], filter: [] },
      {
        memory,
        seconds,
        keepFree: 0,
        onProgress: () => {},
        signal: ending.signal,
        // It waits for that until it is ended.
        input: new Promise<void>((_resolve, reject) => {
          ending.signal.addEventListener('abort', () => reject(ending.signal.reason));
        }),
      },
    );
    const ended = expect(running).rejects.toThrow('enough');
    try {
      const pid = await findChild('windlass-child-parse');
      await expectApart(pid, ['MALLOC_ARENA_MAX', 'UV_THREADPOOL_SIZE']);
      expect(readLimits(pid)).toEqual({
        addresses: upTo(memory + RESERVED),
        seconds: upTo(seconds * availableParallelism()),
        // What the disk has.
        fileBytes: expect.any(Number),
        files: upTo(256),
        core: 0,
      });
    } finally {
      ending.abort(new Error('enough'));
      await ended;
    }
  });

  // Runners send these to all processes of a worker, what frees memory to one.
  test.each([
    ['SIGTERM', 'with its worker'],
    ['SIGINT', 'with its worker'],
    ['SIGTERM', 'alone'],
  ] as const)(
    'a parser of tables that %s ends %s, before its input is there, is waited for no more',
    async (signal, how) => {
      let arrive = () => {};
      const input = new Promise<void>(resolve => {
        arrive = resolve;
      });
      const stop = new AbortController();
      const reason = new Error('the worker stops');
      const path = join(temp.path, 'none');
      const running = runTableChild(
        {
          kind: 'view',
          input: path,
          output: path,
          scratch: temp.path,
          columns: 1,
          sort: [],
          filter: [],
        },
        {
          memory: 512 << 20,
          seconds: 30,
          keepFree: 0,
          onProgress: () => {},
          input,
          signal: stop.signal,
        },
      );
      const ended =
        how === 'alone'
          ? expect(running).rejects.toThrow(`${signal} ended the process that parses`)
          : expect(running).rejects.toBe(reason);
      const pid = await findChild('windlass-child-parse');
      process.kill(pid, signal);
      const isThere = () => findDescendants([process.pid]).some(child => child.pid === pid);
      await waitFor(() => !isThere(), { what: 'the parser to end' });
      // Its pipes close after its end.
      for (let turn = 0; turn < 10; turn++) await setImmediate();
      arrive();
      if (how !== 'alone') setTimeout(() => stop.abort(reason), 200);
      await ended;
    },
  );
});
