import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { StopDeadline } from './stop-deadline.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function begin() {
  const cancel = new AbortController();
  const onOverdue = vi.fn();
  return { cancel, onOverdue, deadline: new StopDeadline(cancel.signal, onOverdue, 100) };
}

test('counts from the cancel on, which may have come before', () => {
  const { cancel, onOverdue } = begin();
  vi.advanceTimersByTime(1_000);
  cancel.abort();
  vi.advanceTimersByTime(99);
  expect(onOverdue).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(onOverdue).toHaveBeenCalledOnce();
  const later = vi.fn();
  new StopDeadline(cancel.signal, later, 100);
  vi.advanceTimersByTime(100);
  expect(later).toHaveBeenCalledOnce();
});

test('output counts as a sign, and the time that we take for it does not count', async () => {
  const { cancel, onOverdue, deadline } = begin();
  cancel.abort();
  let store: () => void = () => {};
  const stored = deadline.exclude(
    () =>
      new Promise<void>(resolve => {
        store = resolve;
      }),
  );
  vi.advanceTimersByTime(1_050);
  store();
  await stored;
  vi.advanceTimersByTime(99);
  expect(onOverdue).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(onOverdue).toHaveBeenCalledOnce();
});

test('output of what would not die is no sign', async () => {
  const { cancel, onOverdue, deadline } = begin();
  cancel.abort();
  deadline.ignoreOutput();
  vi.advanceTimersByTime(50);
  await deadline.exclude(() => {});
  vi.advanceTimersByTime(50);
  expect(onOverdue).toHaveBeenCalledOnce();
});

test('ends with the work', async () => {
  const { cancel, onOverdue, deadline } = begin();
  deadline.clear();
  cancel.abort();
  const other = new StopDeadline(cancel.signal, onOverdue, 100);
  other.clear();
  await other.exclude(() => {});
  vi.advanceTimersByTime(1_000);
  expect(onOverdue).not.toHaveBeenCalled();
});
