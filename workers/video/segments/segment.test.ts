import { afterEach, expect, it, vi } from 'vitest';
import type { WorkerContext } from '../../context.ts';
import { Segment } from './segment.ts';

afterEach(() => vi.useRealTimers());

it('says nothing more of a segment that was closed while it was being offered', async () => {
  vi.useFakeTimers();
  const segment = new Segment({} as WorkerContext, { job: 'job', start: 0, until: 100 });
  let resolve: (claim: { id: string; token: string }) => void = () => {};
  const offered = new Promise<{ id: string; token: string }>(done => {
    resolve = done;
  });
  segment.split(() => offered);
  segment.close();
  resolve({ id: 'segment', token: 'token' });
  await offered;
  await vi.advanceTimersByTimeAsync(0);
  expect(vi.getTimerCount()).toBe(0);
});
