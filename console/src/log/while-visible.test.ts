import { expect, test } from 'vitest';
import { whileVisible } from './while-visible.ts';

/** A page that a test hides and shows. */
class TestPage extends EventTarget {
  visibilityState = 'visible';

  change(state: string): void {
    this.visibilityState = state;
    this.dispatchEvent(new Event('visibilitychange'));
  }
}

const setUp = () => {
  const page = new TestPage();
  const end = new AbortController();
  const runs: AbortSignal[] = [];
  /** Goes on until it is aborted. */
  const work = (signal: AbortSignal) =>
    new Promise<void>((_resolve, reject) => {
      runs.push(signal);
      signal.addEventListener('abort', () => reject(signal.reason));
    });
  return { page, end, runs, work, options: { page, hiddenMs: 20, signal: end.signal } };
};

test('the work stops where the page stays hidden, and begins again where it is seen', async () => {
  const { page, end, runs, work, options } = setUp();
  const done = whileVisible(work, options);
  await expect.poll(() => runs.length).toBe(1);
  page.change('hidden');
  await expect.poll(() => runs[0]?.aborted).toBe(true);
  expect(runs).toHaveLength(1);
  page.change('visible');
  await expect.poll(() => runs.length).toBe(2);
  end.abort(new Error('left'));
  await expect(done).rejects.toThrow('left');
});

test('a page that is hidden for a moment goes on', async () => {
  const { page, end, runs, work, options } = setUp();
  const done = whileVisible(work, { ...options, hiddenMs: 60_000 });
  await expect.poll(() => runs.length).toBe(1);
  page.change('hidden');
  page.change('visible');
  expect(runs[0]?.aborted).toBe(false);
  end.abort(new Error('left'));
  await expect(done).rejects.toThrow('left');
  expect(runs).toHaveLength(1);
});

test('what fails by itself fails, and what ends by itself ends', async () => {
  const { options } = setUp();
  await whileVisible(async () => {}, options);
  const failing = async () => {
    throw new Error('refused');
  };
  await expect(whileVisible(failing, options)).rejects.toThrow('refused');
});
