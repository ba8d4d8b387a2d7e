import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { StopDeadline } from './stop-deadline.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function begin() {
  const cancel = new AbortController();
  const onSilence = vi.fn();
  return { cancel, onSilence, wait: new StopDeadline(cancel.signal, onSilence, 100) };
}

test('counts from the cancel on, which may have come before', () => {
  const { cancel, onSilence } = begin();
  vi.advanceTimersByTime(1_000);
  cancel.abort();
  vi.advanceTimersByTime(99);
  expect(onSilence).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(onSilence).toHaveBeenCalledOnce();
  const later = vi.fn();
  new StopDeadline(cancel.signal, later, 100);
  vi.advanceTimersByTime(100);
  expect(later).toHaveBeenCalledOnce();
});

test('output counts as a sign, and the time that we take for it does not count', async () => {
  const { cancel, onSilence, wait } = begin();
  cancel.abort();
  let store: () => void = () => {};
  const stored = wait.take(
    () =>
      new Promise<void>(resolve => {
        store = resolve;
      }),
  );
  vi.advanceTimersByTime(1_050);
  store();
  await stored;
  vi.advanceTimersByTime(99);
  expect(onSilence).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(onSilence).toHaveBeenCalledOnce();
});

test('output of what would not die is no sign', async () => {
  const { cancel, onSilence, wait } = begin();
  cancel.abort();
  wait.wouldNotEnd();
  vi.advanceTimersByTime(50);
  await wait.take(() => {});
  vi.advanceTimersByTime(50);
  expect(onSilence).toHaveBeenCalledOnce();
});

test('ends with the work', async () => {
  const { cancel, onSilence, wait } = begin();
  wait.end();
  cancel.abort();
  const other = new StopDeadline(cancel.signal, onSilence, 100);
  other.end();
  await other.take(() => {});
  vi.advanceTimersByTime(1_000);
  expect(onSilence).not.toHaveBeenCalled();
});
