import { expect, test } from 'vitest';
import { makeJobContext } from '../../test/harness/job-context.ts';
import { recordIntent } from './record-intent.ts';

test('a cancel that came before the intent is seen before the file is changed', async () => {
  const cancel = new AbortController();
  let written = 0;
  const context = makeJobContext({
    signal: cancel.signal,
    update: async () => {
      written = performance.now();
    },
    // It reads the row unless the lease was renewed since then, which may be while the intent was written.
    assertLeased: async (since = 0) => {
      if (since >= written) cancel.abort(new Error('cancelled'));
    },
  });
  await expect(recordIntent(context)).rejects.toThrow('cancelled');
});
