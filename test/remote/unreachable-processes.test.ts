import { expect, test } from 'vitest';
import { signalProcess } from '../../servers/processes.ts';
import { withHost } from '../faults/fault-host.ts';
import { findMarked, makeMark } from '../faults/stubborn-processes.ts';
import { launchAsync, readOutput, waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const LIMITS = {
  LIMIT_OUTPUT_BYTES: '2000000',
  LIMIT_SPOOL_BYTES: String(1 << 20),
};
/** The host is waited for 15 s for what it stopped to end. */
const GIVEN_UP_MS = 60_000;

/** Nothing tells that a process belongs to a command once it has done all of this before its end is asked for. */
const outOfReach = (words: string) => `(env -i PATH="$PATH" setsid ${words} &)`;

describeStack(missingPrograms('sshd'), 'what is out of reach and holds the output', form => {
  const service = useStack(form, { env: LIMITS });

  /** Its command ends at once; what it has left behind prints, or could. */
  const expectEnd = (words: (mark: string) => string, code: string, options = {}) =>
    withHost(service, async ({ sid }) => {
      const mark = makeMark();
      try {
        const { id } = await launchAsync(service.client, sid, outOfReach(words(mark)), options);
        await waitFor(() => findMarked(mark).length > 0, { what: 'it to run' });
        if (code === 'cancelled') await service.client.delete(`/api/jobs/${id}`);
        const { error } = await waitForEnd(service.client, id, GIVEN_UP_MS);
        expect(error?.code).toBe(code);
        // Nothing beyond the limit is stored.
        const stored = await Promise.all([
          readOutput(service.client, id),
          readOutput(service.client, id, 'stderr'),
        ]);
        const bytes = stored.reduce((sum, { length }) => sum + length, 0);
        if (code === 'output_limit') expect(bytes).toBe(2_000_000);
        else expect(bytes).toBeLessThanOrEqual(2_000_000);
      } finally {
        for (const line of findMarked(mark)) signalProcess(Number.parseInt(line, 10), 'SIGKILL');
      }
    });

  test.concurrent('output without end is output_limit, and not stored without end', () =>
    expectEnd(mark => `yes sleep ${mark}`, 'output_limit'));

  test.concurrent('silence is time_limit', () =>
    expectEnd(mark => `sleep ${mark}`, 'time_limit', { timeout: 8 }));

  test.concurrent('a line now and then does not keep a cancelled command from its end', () =>
    expectEnd(mark => `sh -c 'while sleep 0.2; do echo sleep ${mark}; done'`, 'cancelled'));
});
