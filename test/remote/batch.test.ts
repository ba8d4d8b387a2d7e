import { randomUUID } from 'node:crypto';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { findProgram } from '../../scripts/programs.ts';
import { pidOfWorker } from '../../shared/jobs/worker-id.ts';
import { startCommandLine } from '../harness/clients/command-line.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { type Job, openSession, readOutput, waitForEnd } from '../harness/hosts/remote.ts';
import { startSlurm } from '../harness/hosts/slurm.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack, useStackDatabase, useStarted } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

interface BatchJob extends Job {
  batch: {
    engine: string;
    id: string | null;
    state: string | null;
    reason: string | null;
    nodes: string | null;
  } | null;
}

const missing = missingPrograms('sshd', 'slurmctld', 'slurmd', 'sbatch', 'munged');

/** Outlives its sleep, which may get the TERM for all of them first. */
const SAVING = `#!/bin/bash
trap 'echo saved; exit 0' TERM
echo begun
while :; do sleep 600 & wait; done
`;

/** Those that a look at the host is enough for run at once, as jobs do there. */
describeStack(missing, 'jobs of a Slurm', form => {
  const { stack, client, sshd } = useRemoteStack(form);
  const database = useStackDatabase(stack);
  const slurm = useStarted(startSlurm);
  const line = useStarted(startCommandLine);
  let sid: string;
  beforeAll(async () => {
    slurm.offerTo(sshd);
    sid = await openSession(client, sshd);
  });

  const submit = (body: object) => client.post<BatchJob>(`/api/remotes/${sid}/batch`, body);
  const read = (id: string) => client.get<BatchJob>(`/api/jobs/${id}`);
  const waitUntil = (id: string, is: (job: BatchJob) => boolean, what: string) =>
    waitFor(
      async () => {
        const job = await read(id);
        return is(job) ? job : undefined;
      },
      { what: `job ${id} ${what}`, timeoutMs: 60_000 },
    );

  const waitUntilRemoved = (id: string) =>
    waitFor(
      () => readdirSync(join(sshd.home, '.windlass/batch')).every(name => !name.startsWith(id)),
      { what: `the directory of job ${id} to be removed`, timeoutMs: 60_000 },
    );

  test('the session tells the engine', async () => {
    expect(await client.get(`/api/remotes/${sid}`)).toMatchObject({ engines: ['slurm'] });
  });

  test('a repeat with its Idempotency-Key is the same job, though the session has ended', async () => {
    const ending = await openSession(client, sshd);
    const ask = async () => {
      const answer = await client.fetch(`/api/remotes/${ending}/batch`, {
        method: 'POST',
        headers: { 'Idempotency-Key': ending },
        body: JSON.stringify({ command: 'true' }),
      });
      return { status: answer.status, ...((await answer.json()) as Job) };
    };
    const first = await ask();
    await waitForEnd(client, first.id);
    await client.delete(`/api/remotes/${ending}`);
    expect(await ask()).toMatchObject({ status: 202, id: first.id });
  });

  test('what Slurm does not take has failed, in its words, nothing ran, and nothing stays', async () => {
    const { id } = await submit({ command: 'true', queue: 'nowhere' });
    expect(await waitForEnd(client, id)).toMatchObject({
      state: 'failed',
      error: { code: 'batch_refused', detail: expect.stringContaining('invalid partition') },
    });
    // It is the first one here, so that the host is polled for it alone.
    await waitUntilRemoved(id);
    const { id: elsewhere } = await submit({ command: 'true', cwd: '/no/such' });
    expect(await waitForEnd(client, elsewhere)).toMatchObject({ error: { code: 'cwd_not_found' } });
  });

  test.concurrent('a command runs with what was asked for, and its streams and exit status are kept', async () => {
    const { id, state, batch } = await submit({
      command: 'echo out; echo "$WORD" >&2; echo "$SLURM_CPUS_PER_TASK $PWD"; exit 3',
      cwd: '/usr',
      env: { WORD: "it's" },
      cpus: 2,
      time: 90,
      name: 'mine',
      queue: 'main',
    });
    expect([state, batch]).toEqual(['queued', null]);
    const ended = await waitForEnd(client, id);
    expect(ended).toMatchObject({ state: 'succeeded', result: { returncode: 3 }, error: null });
    expect(ended).toMatchObject({ batch: { engine: 'slurm', id: expect.stringMatching(/^\d+$/) } });
    expect(String(await readOutput(client, id))).toBe('out\n2 /usr\n');
    expect(String(await readOutput(client, id, 'stderr'))).toBe("it's\n");
  });

  test.concurrent('it has the variables of its session, but for its own', async () => {
    const env = { WORD: 'of the session', OTHER: "it's" };
    const own = await openSession(client, sshd, { env });
    const { id } = await client.post<BatchJob>(`/api/remotes/${own}/batch`, {
      command: 'echo "$WORD $OTHER"',
      env: { WORD: 'own' },
    });
    expect(await waitForEnd(client, id)).toMatchObject({ state: 'succeeded' });
    expect(String(await readOutput(client, id))).toBe("own it's\n");
  });

  test.concurrent('a script with its own options runs; output is followed while it runs', async () => {
    const stop = join(sshd.home, `stop-${randomUUID()}`);
    const { id } = await submit({
      script: `#!/bin/bash\n#SBATCH --job-name=other --output=/nowhere/x\n#SBATCH --cpus-per-task 3\necho "begun $SLURM_CPUS_PER_TASK"\nwhile ! test -e ${stop}; do sleep 0.2; done\necho end\n`,
    });
    await waitFor(async () => String(await readOutput(client, id)) === 'begun 3\n', {
      what: 'its first line',
      timeoutMs: 60_000,
    });
    const running = await waitUntil(id, job => job.batch?.state === 'RUNNING', 'to run');
    expect(running).toMatchObject({
      state: 'running',
      batch: { nodes: 'localhost', reason: null },
    });
    writeFileSync(stop, '');
    expect(await waitForEnd(client, id)).toMatchObject({
      state: 'succeeded',
      result: { returncode: 0 },
    });
    expect(String(await readOutput(client, id))).toBe('begun 3\nend\n');
  });

  test.concurrent('its output is whole where a program opens a stream anew, also in a step of the job', async () => {
    const lines = [
      '#!/bin/sh',
      'echo one; echo first >&2',
      'echo two | tee /dev/stderr',
      `srun sh -c 'echo three; echo second >/dev/stderr'`,
      'echo third >/dev/stderr; echo four >/dev/stdout',
      'echo fourth >&2',
    ];
    const { id } = await submit({ script: `${lines.join('\n')}\n` });
    expect(await waitForEnd(client, id)).toMatchObject({
      state: 'succeeded',
      result: { returncode: 0 },
    });
    expect(String(await readOutput(client, id))).toBe('one\ntwo\nthree\nfour\n');
    const errors = String(await readOutput(client, id, 'stderr'));
    expect(errors).toBe('first\ntwo\nsecond\nthird\nfourth\n');
  });

  test.concurrent('the folder and the input that a script names are those of its job', async () => {
    const folder = join(sshd.home, 'a folder');
    mkdirSync(folder);
    writeFileSync(join(folder, 'data'), 'of the file\n');
    const script = `#!/bin/sh\n#SBATCH --chdir="${folder}" --input=data\necho "$PWD"; cat\n`;
    const { id } = await submit({ script });
    expect(await waitForEnd(client, id)).toMatchObject({
      state: 'succeeded',
      result: { returncode: 0 },
      batch: { id: expect.stringMatching(/^\d+$/) },
    });
    expect(String(await readOutput(client, id))).toBe(`${folder}\nof the file\n`);
    const { id: elsewhere } = await submit({ script, cwd: '/usr', options: ['--input=/dev/null'] });
    await waitForEnd(client, elsewhere);
    expect(String(await readOutput(client, elsewhere))).toBe('/usr\n');
  });

  test.concurrent('variables that name what a shell has of its own are the job’s alone', async () => {
    const env = { dir: 'mine', cwd: '/tmp', PATH: '/nowhere' };
    const { id } = await submit({
      script: '#!/bin/sh\necho $dir $cwd $PATH $PWD; exit 3\n',
      env,
      cwd: '/usr',
    });
    expect(await waitForEnd(client, id)).toMatchObject({ result: { returncode: 3 } });
    expect(String(await readOutput(client, id))).toBe('mine /tmp /nowhere /usr\n');
  });

  test.concurrent('a signal that Slurm sends to the script alone reaches it once, and one for all of them too', async () => {
    const go = join(sshd.home, `go-${randomUUID()}`);
    const script = `#!/bin/bash\ntrap 'echo checkpoint' USR1\ntrap 'echo warned' TERM\necho begun\nwhile ! test -e ${go}; do sleep 0.2; done\necho end\n`;
    const { id } = await submit({ script });
    const has = (text: string) =>
      waitFor(async () => String(await readOutput(client, id)) === text, {
        what: `the output ${text}`,
        timeoutMs: 60_000,
      });
    await has('begun\n');
    const there = (await read(id)).batch?.id ?? '';
    await slurm.ask('scancel', '--batch', '--signal=USR1', there);
    await has('begun\ncheckpoint\n');
    await slurm.ask('scancel', '--full', '--signal=TERM', there);
    await has('begun\ncheckpoint\nwarned\n');
    writeFileSync(go, '');
    expect(await waitForEnd(client, id)).toMatchObject({
      state: 'succeeded',
      result: { returncode: 0 },
    });
    expect(String(await readOutput(client, id))).toBe('begun\ncheckpoint\nwarned\nend\n');
  });

  test.concurrent('windlass batch submits a command or a script, and lives like the job', async () => {
    const { url, username, password } = stack;
    await line.run(['login', url, '--user', username, '--password-stdin'], { input: password });
    const command = 'echo "out of $SLURM_JOB_NAME"; echo "$WORD" >&2; exit 3';
    const options = ['--name', 'by hand', '--cpus', '2', '--time', '90', '--env', 'WORD=err'];
    expect(await line.run(['batch', 'host', ...options, '--', command])).toEqual({
      code: 3,
      // It may have waited there.
      stderr: expect.stringMatching(/^(windlass: job \d+ of slurm: .*\n)*err\n$/),
      stdout: expect.stringMatching(/^out of windlass-\S+\n$/),
    });
    writeFileSync(
      join(line.home, 'job.sh'),
      '#!/bin/sh\necho "of a script: $SLURM_CPUS_PER_TASK"\n',
    );
    const script = ['batch', 'host', '-d', '--script', 'job.sh', '--option=--cpus-per-task=3'];
    const { stdout: job } = await line.run(script);
    expect(await line.run(['logs', '-f', job.trim()])).toEqual({
      code: 0,
      stdout: 'of a script: 3\n',
      stderr: expect.stringMatching(/^(windlass: job \d+ of slurm: .*\n)*$/),
    });
    expect((await line.run(['batch', 'host'])).stderr).toContain('--script FILE');
  });

  test('one whose payload no worker understands waits and runs on there, is told of, and can be cancelled', {
    timeout: 120_000,
  }, async () => {
    const go = join(sshd.home, `go-${randomUUID()}`);
    const command = `until test -e ${go}; do echo line; sleep 0.2; done`;
    const ids = [(await submit({ command })).id, (await submit({ command })).id] as const;
    for (const id of ids) await waitUntil(id, job => job.batch?.state === 'RUNNING', 'to run');
    await database`update jobs set payload = '{"command": 1}' where id = any(${ids})`;
    const message = 'waiting: no worker understands what was asked for';
    for (const id of ids)
      expect(await waitUntil(id, job => job.message === message, 'to wait')).toMatchObject({
        state: 'running',
        batch: { state: 'RUNNING' },
      });
    await waitFor(
      async () => {
        const { degraded } = (await (await stack.api('/readyz')).json()) as { degraded: string[] };
        const told =
          '2 jobs of kind batch (payload version 2) wait for a worker of a newer release.';
        return degraded.includes(told);
      },
      { what: '/readyz to tell of them', timeoutMs: 30_000 },
    );

    const [kept, unwanted] = ids;
    await client.delete(`/api/jobs/${unwanted}`);
    expect(await waitForEnd(client, unwanted)).toMatchObject({ state: 'cancelled' });
    await waitUntilRemoved(unwanted);
    await database`update jobs set payload = jsonb_build_object('command', ${command}::text) where id = ${kept}`;
    await waitUntil(kept, job => job.message === null, 'to be understood');
    writeFileSync(go, '');
    expect(await waitForEnd(client, kept)).toMatchObject({
      state: 'succeeded',
      result: { returncode: 0 },
    });
  });

  test('one that was accepted by rules of its day is repeated, and one that is not understood is not', async () => {
    const { id } = await submit({ command: 'true' });
    await waitForEnd(client, id);
    const repeat = () => client.fetch(`/api/jobs/${id}/retry`, { method: 'POST' });
    await database`update jobs set payload = '{"script": "echo old"}' where id = ${id}`;
    const answer = await repeat();
    expect(answer.status).toBe(202);
    const again = (await answer.json()) as BatchJob;
    expect(await waitForEnd(client, again.id)).toMatchObject({ state: 'succeeded' });
    expect(String(await readOutput(client, again.id))).toBe('old\n');
    await database`update jobs set payload = '{"command": 1}' where id = ${id}`;
    await expectProblem(await repeat(), 409, 'conflict');
  });

  test('one that waits there is queued with the reason, holds no slot, and is cancelled for good', async () => {
    const ledger = `ledger-${randomUUID()}`;
    const { id } = await submit({ command: `echo ran >>$HOME/${ledger}`, options: ['--hold'] });
    const waiting = await waitUntil(id, job => job.batch?.state === 'PENDING', 'to wait');
    expect(waiting).toMatchObject({ state: 'queued', batch: { reason: 'JobHeldUser' } });
    const { id: other } = await submit({ command: 'true' });
    await waitForEnd(client, other);
    const running = async () => {
      const { items } = await client.get<{ items: { running: number }[] }>('/api/workers');
      return items.reduce((sum, worker) => sum + worker.running, 0);
    };
    await waitFor(async () => (await running()) === 0, { what: 'it to hold no slot' });
    expect((await client.fetch(`/api/jobs/${id}`, { method: 'DELETE' })).ok).toBe(true);
    expect(await waitForEnd(client, id)).toMatchObject({ state: 'cancelled' });
    const states = await slurm.ask(
      'squeue',
      '--noheader',
      '--states=all',
      `--jobs=${waiting.batch?.id}`,
      '--format=%T',
    );
    expect(states.trim()).toBe('CANCELLED');
    expect(existsSync(join(sshd.home, ledger))).toBe(false);
  });

  test.concurrent('one that runs is cancelled with all that it started', async () => {
    const ledger = join(sshd.home, `ledger-${randomUUID()}`);
    // Its child may be ended first, whose status is then its own: one of 0 would be an end by itself.
    const { id } = await submit({ command: `echo $$ >${ledger}; sleep 600 & wait $!` });
    await waitFor(() => existsSync(ledger), { what: 'it to begin', timeoutMs: 60_000 });
    await client.fetch(`/api/jobs/${id}`, { method: 'DELETE' });
    expect(await waitForEnd(client, id)).toMatchObject({ state: 'cancelled' });
    expect(existsSync(`/proc/${readFileSync(ledger, 'utf8').trim()}`)).toBe(false);
  });

  test.concurrent('one that is renamed there is followed, and cancelled with all that it started', async () => {
    const ledger = join(sshd.home, `ledger-${randomUUID()}`);
    const { id } = await submit({ command: `echo $$ >${ledger}; sleep 600 & wait $!` });
    const { batch } = await waitUntil(id, job => job.batch?.state === 'RUNNING', 'to run');
    const { id: held } = await submit({ command: 'echo ran', options: ['--hold'] });
    const waiting = await waitUntil(held, job => job.batch?.state === 'PENDING', 'to wait');
    const rename = (there = '') => slurm.ask('scontrol', 'update', `JobId=${there}`, 'JobName=own');
    await rename(batch?.id ?? '');
    await rename(waiting.batch?.id ?? '');
    await slurm.ask('scontrol', 'release', waiting.batch?.id ?? '');
    expect(await waitForEnd(client, held)).toMatchObject({
      state: 'succeeded',
      batch: { id: waiting.batch?.id, state: 'COMPLETED' },
    });
    expect(await read(id)).toMatchObject({ state: 'running', batch: { state: 'RUNNING' } });
    await client.fetch(`/api/jobs/${id}`, { method: 'DELETE' });
    expect(await waitForEnd(client, id)).toMatchObject({
      state: 'cancelled',
      error: { detail: 'Cancelled.' },
    });
    expect(existsSync(`/proc/${readFileSync(ledger, 'utf8').trim()}`)).toBe(false);
  });

  test.concurrent('what Slurm or someone there ends has failed, in its words', async () => {
    const { id } = await submit({ command: 'sleep 600' });
    const { batch } = await waitUntil(id, job => job.batch?.state === 'RUNNING', 'to run');
    await slurm.ask('scancel', batch?.id ?? '');
    expect(await waitForEnd(client, id)).toMatchObject({
      state: 'failed',
      error: { code: 'batch_ended', detail: expect.stringContaining('CANCELLED') },
      batch: { state: 'CANCELLED' },
    });
  });

  test.concurrent('it has failed, too, where its script traps the signal and exits with 0', async () => {
    const { id } = await submit({
      script: SAVING,
    });
    await waitFor(async () => String(await readOutput(client, id)) === 'begun\n', {
      what: 'its first line',
      timeoutMs: 60_000,
    });
    await slurm.ask('scancel', '--full', (await read(id)).batch?.id ?? '');
    expect(await waitForEnd(client, id)).toMatchObject({
      state: 'failed',
      error: { code: 'batch_ended', detail: expect.stringContaining('CANCELLED') },
    });
    expect(String(await readOutput(client, id))).toBe('begun\nsaved\n');
  });

  test.concurrent('one that Slurm ends to start it again has failed, though it exits with 0 and runs nothing then', async () => {
    const { id } = await submit({
      script: SAVING,
    });
    await waitFor(async () => String(await readOutput(client, id)) === 'begun\n', {
      what: 'its first line',
      timeoutMs: 60_000,
    });
    const there = (await read(id)).batch?.id ?? '';
    await slurm.ask('scontrol', 'update', `JobId=${there}`, 'Requeue=1');
    await slurm.ask('scontrol', 'requeue', there);
    const state = ['--noheader', '--states=all', `--jobs=${there}`, '--format=%T'];
    await waitFor(async () => (await slurm.ask('squeue', ...state)).trim() === 'PENDING', {
      what: 'it to wait again',
      timeoutMs: 60_000,
    });
    // It would wait for two minutes.
    await slurm.ask('scontrol', 'update', `JobId=${there}`, 'StartTime=now');
    expect(await waitForEnd(client, id)).toMatchObject({
      state: 'failed',
      error: { code: 'batch_ended', detail: expect.stringContaining('started it again') },
    });
    expect(String(await readOutput(client, id))).toBe('begun\nsaved\n');
  });

  test.concurrent('its files leave the host', async () => {
    const { id } = await submit({ command: 'true' });
    await waitForEnd(client, id);
    await waitUntilRemoved(id);
  });

  test('one that is cancelled after its worker was lost while it made the directory leaves nothing', async () => {
    const { path, until } = hangIn('wc');
    const { id } = await submit({ command: 'true', env: { TOKEN: 'secret' } });
    const batch = join(sshd.home, '.windlass/batch');
    const find = () => readdirSync(batch).find(name => name.startsWith(id));
    const folder = await waitFor(find, { what: 'its directory', timeoutMs: 60_000 });
    process.kill(pidOfWorker((await read(id)).worker ?? ''), 'SIGKILL');
    until();
    await waitFor(() => existsSync(join(batch, folder, 'ask')), { what: 'all of it' });
    rmSync(path);
    expect((await client.fetch(`/api/jobs/${id}`, { method: 'DELETE' })).ok).toBe(true);
    expect(await waitForEnd(client, id)).toMatchObject({ state: 'cancelled' });
    await waitUntilRemoved(id);
  });

  test('one that somebody cancels there while nobody looks has failed, is not submitted again, and runs nothing', async () => {
    const ledger = join(sshd.home, `ledger-${randomUUID()}`);
    const { id } = await submit({ command: `echo ran >>${ledger}`, options: ['--hold'] });
    const { batch } = await waitUntil(id, job => job.batch?.state === 'PENDING', 'to wait');
    const there = batch?.id ?? '';
    // As when it has passed MinJobAge since.
    const purged = putFirst(
      'squeue',
      `${findProgram('squeue')} "$@" | grep -v '^${there}|' || true`,
    );
    await slurm.ask('scancel', there);
    expect(await waitForEnd(client, id)).toMatchObject({
      state: 'failed',
      error: { code: 'batch_ended', detail: expect.stringContaining('nothing ran') },
      batch: { id: there },
    });
    rmSync(purged);
    expect(existsSync(ledger)).toBe(false);
  });

  const sbatch = findProgram('sbatch');
  test.each([
    ['other numbers', `echo 4711; ${sbatch} "$@"; echo 4712`],
    ['a number that Slurm refuses', `${sbatch} "$@"; echo 2147483648`],
    [
      'the id of another job',
      `${sbatch} "$@"; ${sbatch} --parsable --hold --job-name=own --wrap=true`,
    ],
  ])('one is followed by its name where its site prints %s', async (_, print) => {
    const { id: other } = await submit({ command: 'true', options: ['--hold'] });
    const { batch: held } = await waitUntil(other, job => Boolean(job.batch?.id), 'to wait');
    const prints = putFirst('sbatch', print);
    const { id } = await submit({ command: 'sleep 600' });
    // The others are followed meanwhile.
    await waitUntil(id, job => Boolean(job.batch?.id), 'to be submitted');
    await slurm.ask('scontrol', 'release', held?.id ?? '');
    expect(await waitForEnd(client, other)).toMatchObject({ state: 'succeeded' });
    const running = (job: BatchJob) => job.batch?.state === 'RUNNING';
    const { batch } = await waitUntil(id, running, 'to be found');
    rmSync(prints);
    await client.fetch(`/api/jobs/${id}`, { method: 'DELETE' });
    expect(await waitForEnd(client, id)).toMatchObject({ state: 'cancelled' });
    const state = ['--noheader', '--states=all', `--jobs=${batch?.id}`, '--format=%T'];
    // It is COMPLETING while its processes end.
    await expect
      .poll(async () => (await slurm.ask('squeue', ...state)).trim(), { timeout: 60_000 })
      .toBe('CANCELLED');
  });

  /** Has this program, as the service calls it on the host, wait. */
  function hangIn(program: string): { path: string; until: () => void } {
    const hangs = join(sshd.home, 'hangs');
    writeFileSync(hangs, '');
    const wait = `while [ -e ${hangs} ]; do sleep 0.1; done`;
    const path = putFirst(program, `${wait}\nexec ${findProgram(program)} "$@"`);
    return { path, until: () => rmSync(hangs) };
  }

  /** Has a program of this name do this where the service calls it on the host, until the file is removed. */
  function putFirst(program: string, does: string): string {
    const path = join(sshd.home, 'bin', program);
    mkdirSync(join(sshd.home, 'bin'), { recursive: true });
    appendFileSync(join(sshd.home, '.bashrc'), 'export PATH="$HOME/bin:$PATH"\n');
    writeFileSync(path, `#!/bin/sh\n${does}\n`, { mode: 0o755 });
    return path;
  }

  test('one that is cancelled and cannot be ended for half a day is given up as cancelled', async () => {
    const { id } = await submit({ command: 'true', options: ['--hold'] });
    await waitUntil(id, job => job.batch?.state === 'PENDING', 'to wait');
    await sshd.stop();
    await database`update jobs set unreachable_since = now() - interval '13 hours' where id = ${id}`;
    await client.fetch(`/api/jobs/${id}`, { method: 'DELETE' });
    expect(await waitForEnd(client, id)).toMatchObject({
      state: 'cancelled',
      error: { detail: expect.stringContaining('may run on') },
    });
  });
});
