import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, onTestFailed, test } from 'vitest';
import { type Job, openSession, readOutput, waitForEnd } from '../harness/hosts/remote.ts';
import { startSlurm, type TestSlurm } from '../harness/hosts/slurm.ts';
import type { Random } from '../harness/random.ts';
import { describeUnless, missingPrograms } from '../harness/skip.ts';
import { waitFor } from '../harness/wait-for.ts';
import {
  type FaultHost,
  killSomeWorker,
  type RunningStack,
  startFaultStack,
  withHost,
} from './fault-host.ts';
import { isFull, withSeed } from './settings.ts';
import { quoteLog } from './suite.ts';

const JOBS = isFull ? 200 : 10;
/** At most: fewer where all jobs have ended before. The short form causes each kind once. */
const FAULTS = isFull ? 40 : 4;
const SECONDS = 3;
/** On a busy machine a controller takes half a minute to start again, and each poll of it may take another. */
const TIMEOUT_MS = 300_000 + JOBS * 6_000;

const missing = missingPrograms('sshd', 'slurmctld', 'slurmd', 'sbatch', 'munged');

describeUnless(missing, 'batch jobs under faults', () => {
  let service: RunningStack;
  let slurm: TestSlurm;
  beforeAll(async () => {
    [service, slurm] = await Promise.all([startFaultStack('postgres'), startSlurm()]);
  });
  afterAll(async () => {
    await Promise.all([service?.stack.stop(), slurm?.stop()]);
  });

  test(
    `${JOBS} jobs run once each while workers, the API, the controller and the link are killed`,
    { timeout: TIMEOUT_MS },
    () =>
      withHost(service, host =>
        withSeed(async random => {
          const before = service.stack.log().length;
          onTestFailed(() => console.error(quoteLog(service.stack.log().slice(before))));
          slurm.offerTo(host.sshd);
          const { hostname } = await service.client.get<{ hostname: string }>(
            `/api/remotes/${host.sid}`,
          );
          const sid = await openSession(service.client, host.sshd, { hostname });
          const over = new AbortController();
          const faults = cause(host, random, over.signal);
          const jobs = await Promise.all(
            Array.from({ length: JOBS }, () =>
              submit(host, sid, random.between(0, isFull ? 20_000 : 10_000)),
            ),
          );
          const ended: Job[] = [];
          for (const { id } of jobs) ended.push(await waitForEnd(service.client, id, TIMEOUT_MS));
          over.abort();
          console.log('faults:', JSON.stringify(await faults));
          const counts: Record<string, number> = {};
          for (const [n, job] of jobs.entries()) {
            const end = ended[n];
            const what = end?.error?.code ?? end?.state ?? '';
            counts[what] = (counts[what] ?? 0) + 1;
            const seen = [
              await readOutput(service.client, job.id),
              await readOutput(service.client, job.id, 'stderr'),
            ].map(String);
            const whole = [`begin\nend\n`, 'begun\nout\nend\n', 'err\n'];
            const was = [existsSync(job.ledger) ? readFileSync(job.ledger, 'utf8') : '', ...seen];
            if (end?.state === 'succeeded') expect([job.id, ...was]).toEqual([job.id, ...whole]);
            // Slurm itself lost it, with what its controller had not saved: it killed it, or never started it.
            else
              expect([job.id, end?.error?.code, was[0]]).toEqual([
                job.id,
                expect.stringMatching(/batch_ended|outcome_unknown/),
                end?.error?.detail?.includes('nothing ran')
                  ? ''
                  : // It may be killed between its command's end and its record of that.
                    expect.stringMatching(/^begin\n(end\n)?$/),
              ]);
          }
          console.log('ends:', JSON.stringify(counts));
          await waitFor(
            () =>
              readdirSync(join(host.sshd.home, '.windlass/batch')).length ===
              (counts.outcome_unknown ?? 0),
            { what: 'the files of all jobs to be removed', timeoutMs: 120_000 },
          );
        }),
      ),
  );

  /** Submits as a careful client does: the same request, with one key, until it is accepted. */
  async function submit(
    { sshd }: FaultHost,
    sid: string,
    afterMs: number,
  ): Promise<{ id: string; ledger: string }> {
    const ledger = join(sshd.home, `ledger-${randomUUID()}`);
    const key = randomUUID();
    const command = `echo begin >>${ledger}; echo begun; echo err >&2; sleep ${SECONDS}; echo out; echo end; echo end >>${ledger}`;
    await delay(afterMs);
    const id = await waitFor(
      async () => {
        const response = await service.client.fetch(`/api/remotes/${sid}/batch`, {
          method: 'POST',
          headers: { 'Idempotency-Key': key },
          body: JSON.stringify({ command }),
          signal: AbortSignal.timeout(20_000),
        });
        const text = await response.text();
        if (response.status !== 202) throw new Error(`${response.status}: ${text}`);
        return (JSON.parse(text) as Job).id;
      },
      { what: 'a batch job to be accepted', timeoutMs: 120_000 },
    );
    return { id, ledger };
  }

  /** One fault after another, at moments that the seed draws; how often each was caused. */
  async function cause(
    { proxy }: FaultHost,
    random: Random,
    over: AbortSignal,
  ): Promise<Record<string, number>> {
    const caused: Record<string, number> = {};
    const kinds = {
      worker: () => killSomeWorker(service, random),
      api: async () => void service.stack.kill('windlass-api'),
      link: async () => proxy.cut(),
      controller: async () => {
        await slurm.down();
        await delay(random.between(0, 3_000));
        await waitFor(() => slurm.up().then(() => true), {
          what: 'the controller to be there again',
          timeoutMs: 180_000,
        });
      },
    };
    const names = Object.keys(kinds) as (keyof typeof kinds)[];
    for (let n = 0; n < FAULTS && !over.aborted; n++) {
      await delay(random.between(500, 5_000), undefined, { signal: over }).catch(() => {});
      // Each of them at least once.
      const kind = names[n] ?? random.pick(names);
      // A process that was killed just now may not be there again.
      await kinds[kind]().catch(() => {});
      caused[kind] = (caused[kind] ?? 0) + 1;
    }
    return caused;
  }
});
