import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, expect, test } from 'vitest';
import { findProgram } from '../../scripts/programs.ts';
import { type Job, launchAsync, openSession, waitForEnd } from '../harness/hosts/remote.ts';
import { startSlurm } from '../harness/hosts/slurm.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack, useStarted } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

interface BatchJob extends Job {
  message: string | null;
  batch: { id: string | null; state: string | null } | null;
}

const JOBS = 20;
const TIMEOUT_MS = 300_000;
const PROGRAMS = ['squeue', 'scancel', 'sacct'];

const missing = missingPrograms('sshd', 'slurmctld', 'slurmd', 'sbatch', 'munged');

describeStack(missing, 'calls of a Slurm', form => {
  const { client, sshd } = useRemoteStack(form);
  const slurm = useStarted(startSlurm);
  let sid: string;
  beforeAll(async () => {
    slurm.offerTo(sshd);
    mkdirSync(join(sshd.home, 'bin'), { recursive: true });
    appendFileSync(join(sshd.home, '.bashrc'), 'export PATH="$HOME/bin:$PATH"\n');
    for (const program of PROGRAMS) offer(program, `exec ${findProgram(program)} "$@"`);
    sid = await openSession(client, sshd);
  });

  /** Has a program of this name note each call, and then do this. */
  const offer = (program: string, does: string) =>
    writeFileSync(
      join(sshd.home, 'bin', program),
      `#!/bin/sh\necho ${program} >>"$HOME/calls"\n${does}\n`,
      { mode: 0o755 },
    );

  /** The calls of each program during `work`. */
  async function count(work: () => Promise<unknown>): Promise<Record<string, number>> {
    rmSync(join(sshd.home, 'calls'), { force: true });
    await work();
    const path = join(sshd.home, 'calls');
    const calls = existsSync(path) ? readFileSync(path, 'utf8').trimEnd().split('\n') : [];
    return Object.fromEntries(PROGRAMS.map(name => [name, calls.filter(it => it === name).length]));
  }

  const submitMany = () =>
    Promise.all(
      Array.from({ length: JOBS }, async () => {
        const body = { command: 'true', options: ['--hold'] };
        return (await client.post<BatchJob>(`/api/remotes/${sid}/batch`, body)).id;
      }),
    );

  /** Each may wait for its turn on a busy machine. */
  async function untilAll(ids: string[], is: (job: BatchJob) => unknown, what: string) {
    for (const id of ids)
      await waitFor(async () => is(await client.get<BatchJob>(`/api/jobs/${id}`)), {
        what: `job ${id} ${what}`,
        timeoutMs: TIMEOUT_MS / 3,
      });
  }

  const isPending = ({ batch }: BatchJob) => batch?.state === 'PENDING';

  test('of jobs whose submission got no answer, one call in 5 s asks for all', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const sbatch = 'sbatch: error: Batch job submission failed: Socket timed out';
    offer('sbatch', `${findProgram('sbatch')} "$@" >/dev/null; echo '${sbatch}' >&2; exit 1`);
    offer('squeue', 'echo "Unable to contact slurm controller" >&2; exit 1');
    const ids = await submitMany();
    await untilAll(ids, ({ message }) => message?.includes('Unable to contact'), 'to be asked for');
    const { squeue, sacct } = await count(() => delay(30_000));
    console.log(`${JOBS} jobs without an answer, in 30 s: squeue ${squeue}, sacct ${sacct}`);
    expect(squeue).toBeLessThanOrEqual(7);
    offer('squeue', `exec ${findProgram('squeue')} "$@"`);
    const found = await count(() => untilAll(ids, isPending, 'to be found'));
    rmSync(join(sshd.home, 'bin', 'sbatch'));
    for (const id of ids) await client.delete(`/api/jobs/${id}`);
    for (const id of ids) await waitForEnd(client, id, TIMEOUT_MS / 3);
    expect(found.squeue).toBeLessThan(JOBS);
  });

  test('cancels are sent in one call, and hold no slot while Slurm does not answer', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const ids = await submitMany();
    await untilAll(ids, isPending, 'to wait');
    const hangs = join(sshd.home, 'hangs');
    writeFileSync(hangs, '');
    const wait = `while [ -e ${hangs} ]; do sleep 0.1; done`;
    for (const program of ['squeue', 'scancel'])
      offer(program, `${wait}\nexec ${findProgram(program)} "$@"`);
    const calls = await count(async () => {
      for (const id of ids) await client.delete(`/api/jobs/${id}`);
      const { id } = await launchAsync(client, sid, 'echo meanwhile');
      expect(await waitForEnd(client, id)).toMatchObject({ state: 'succeeded' });
      await waitFor(
        async () => {
          const { items } = await client.get<{ items: { running: number }[] }>('/api/workers');
          return items.every(({ running }) => running === 0);
        },
        { what: 'them to hold no slot', timeoutMs: 60_000 },
      );
      rmSync(hangs);
      for (const id of ids)
        expect(await waitForEnd(client, id, TIMEOUT_MS / 3)).toMatchObject({ state: 'cancelled' });
    });
    console.log(`${JOBS} cancels: squeue ${calls.squeue}, scancel ${calls.scancel}`);
    expect(calls.scancel).toBeLessThan(JOBS / 2);
    expect(calls.squeue).toBeLessThan(JOBS / 2);
    const states = await slurm.ask('squeue', '--noheader', '--format=%T');
    expect(states).toBe('');
  });
});
