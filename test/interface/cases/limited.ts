import { expect } from 'vitest';
import { type Row, row } from '../row.ts';
import { expectAnswer, expectError, type Tools } from '../tools.ts';

const at = (words: string) => `Remote sessions, launch: ${words}`;
const LAUNCH = 'POST /remotes/launch';

/** Settings under which a launch meets each of its limits. */
export const LIMITS = {
  LAUNCH_MAX_WAIT: '1',
  LIMIT_COMMAND_SECONDS: '5',
  LIMIT_OUTPUT_BYTES: '1000',
};

/** Launches a command that no limit leaves alone; once its job has ended, the same request again gets what it became. */
async function launchTwice(
  { ask, make, ended, world }: Tools,
  command: string,
  prefer: Record<string, string> = {},
) {
  const headers = { ...prefer, 'Idempotency-Key': world.name('launch') };
  const json = { sid: await make.session(), command };
  const first = await ask('POST', '/remotes/launch', { json, headers });
  expectAnswer(first, 202);
  const id = first.headers.location?.replace('/api/jobs/', '');
  const job = await ended(String(id));
  return { first, job, again: await ask('POST', '/remotes/launch', { json, headers }) };
}

/** Launches under LAUNCH_MAX_WAIT and LIMIT_OUTPUT_BYTES: on a stack of its own. */
export const LIMITED: Row[] = [
  row(
    at('LAUNCH_MAX_WAIT sets a limit, then 202; 400 with Location for time_limit'),
    LAUNCH,
    async tools => {
      const { first, job, again } = await launchTwice(tools, 'exec sleep 600');
      expect(first.headers.location).toBe(`/api/jobs/${job.id}`);
      expect(job).toMatchObject({ state: 'failed', error: { code: 'time_limit' } });
      expectError(again, 400, { code: 'time_limit', title: 'Time limit reached' });
      expect(again.headers.location).toBe(`/api/jobs/${job.id}`);
    },
    'host',
  ),
  row(
    at('400 with Location for output_limit'),
    LAUNCH,
    async tools => {
      // The second ends before it could be stopped.
      for (const rest of ['; exec sleep 600', '']) {
        // Whether it ends within LAUNCH_MAX_WAIT depends on the machine.
        const prefer = { Prefer: 'respond-async' };
        const { job, again } = await launchTwice(tools, `head -c 2000 /dev/zero${rest}`, prefer);
        expect(job).toMatchObject({ state: 'failed', error: { code: 'output_limit' } });
        expectError(again, 400, { code: 'output_limit', title: 'Output limit reached' });
        expect(again.headers.location).toBe(`/api/jobs/${job.id}`);
      }
    },
    'host',
  ),
];
