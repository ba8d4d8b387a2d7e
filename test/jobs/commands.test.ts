import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  holderOf,
  type Job,
  launchAsync,
  openSession,
  readOutput,
  waitForEnd,
} from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeForms } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

/** A command that prints `n` numbered lines, a tenth of a second apart, and keeps a ledger on the host. */
const count = (n: number, ledger: string) =>
  `i=1; while [ $i -le ${n} ]; do echo "line $i"; echo $i >> "$HOME/${ledger}"; i=$((i+1)); sleep 0.1; done`;
const lines = (n: number, prefix = 'line ') =>
  Array.from({ length: n }, (_, i) => `${prefix}${i + 1}\n`).join('');

describeForms(missingPrograms('sshd'), 'commands', form => {
  const { client, sshd } = useRemoteStack(form);
  let withAgent: string;
  let plain: string;

  beforeAll(async () => {
    [withAgent, plain] = await Promise.all([
      openSession(client, sshd),
      openSession(client, sshd, { agent: false }),
    ]);
  });

  for (const kind of ['with an agent', 'without an agent'] as const) {
    describe(kind, () => {
      const sid = () => (kind === 'with an agent' ? withAgent : plain);

      test('launch answers with both streams and the exit status', async () => {
        const response = await client.fetch('/api/remotes/launch', {
          method: 'POST',
          body: JSON.stringify({ sid: sid(), command: 'echo out; echo err >&2; exit 7' }),
        });
        expect(response.status).toBe(200);
        const body = (await response.json()) as { job: string };
        expect(body).toEqual({
          command: 'echo out; echo err >&2; exit 7',
          output: 'out\n',
          errors: 'err\n',
          returncode: 7,
          job: expect.any(String),
        });
        expect(response.headers.get('Location')).toBe(`/api/jobs/${body.job}`);
      });

      test('a command killed by a signal answers 128 + n', async () => {
        const answer = await client.post<{ returncode: number }>('/api/remotes/launch', {
          sid: sid(),
          command: 'kill -TERM $$',
        });
        expect(answer.returncode).toBe(143);
      });

      test('every byte arrives, whatever it is', async () => {
        const bytes =
          'i=0; while [ $i -lt 64 ]; do printf "\\\\000\\\\377\\\\303\\\\050line\\\\r\\\\n"; i=$((i+1)); done'.replaceAll(
            '\\\\',
            '\\',
          );
        const { id } = await launchAsync(client, sid(), bytes);
        expect((await waitForEnd(client, id)).state).toBe('succeeded');
        const expected = Buffer.concat(
          Array.from({ length: 64 }, () =>
            Buffer.from([0, 0xff, 0xc3, 0x28, ...Buffer.from('line\r\n')]),
          ),
        );
        expect((await readOutput(client, id)).equals(expected)).toBe(true);
        expect((await readOutput(client, id, 'stdout', 100)).equals(expected.subarray(100))).toBe(
          true,
        );
      });

      test('12 MB of output come whole, and launch says that its answer is cut', async () => {
        const answer = await client.post<{ output: string; truncated: boolean; job: string }>(
          '/api/remotes/launch',
          {
            sid: sid(),
            command:
              'i=0; while [ $i -lt 12 ]; do head -c 1000000 /dev/zero | tr "\\000" "a"; echo; i=$((i+1)); done',
          },
        );
        expect(answer.truncated).toBe(true);
        expect(answer.output.length).toBe(10 << 20);
        const whole = await readOutput(client, answer.job);
        expect(whole.equals(Buffer.from(`${'a'.repeat(1_000_000)}\n`.repeat(12)))).toBe(true);
      });

      test('respond-async answers 202 at once; events bring every line and the end', async () => {
        const response = await client.fetch('/api/remotes/launch', {
          method: 'POST',
          headers: { Prefer: 'respond-async' },
          body: JSON.stringify({
            sid: sid(),
            command: 'echo ä; sleep 0.3; echo b >&2; sleep 0.3; echo c',
          }),
        });
        expect(response.status).toBe(202);
        const job = (await response.json()) as Job;
        expect(response.headers.get('Location')).toBe(`/api/jobs/${job.id}`);
        const events = [];
        for await (const event of client.events(job.id)) events.push(event);
        expect(events[0]).toEqual({
          event: 'state',
          data: { state: expect.stringMatching(/queued|running/) },
        });
        expect(events.at(-1)).toEqual({ event: 'state', data: { state: 'succeeded' } });
        const output = events.filter(({ event }) => event === 'output').map(({ data }) => data);
        const time = expect.any(String);
        expect(output).toEqual([
          { stream: 'stdout', offset: 0, time, text: 'ä\n' },
          { stream: 'stderr', offset: 0, time, text: 'b\n' },
          { stream: 'stdout', offset: 3, time, text: 'c\n' },
        ]);
      });

      test('Last-Event-ID goes on where a stream broke off', async () => {
        const { id } = await launchAsync(client, sid(), 'printf abc; printf def >&2');
        await waitForEnd(client, id);
        const response = await client.fetch(`/api/jobs/${id}/events`, {
          headers: { 'Last-Event-ID': '2-1' },
        });
        const text = await response.text();
        expect(text).toMatch(/data: {"stream":"stdout","offset":2,"time":"[^"]+","text":"c"}/);
        expect(text).toMatch(/data: {"stream":"stderr","offset":1,"time":"[^"]+","text":"ef"}/);
      });

      test('cancel ends it on the host', async () => {
        const mark = `cancelled-${kind.replaceAll(' ', '-')}`;
        const { id } = await launchAsync(
          client,
          sid(),
          `echo begun; sleep 30; echo "$$" > "$HOME/${mark}"`,
        );
        await waitFor(async () => (await readOutput(client, id)).length > 0, {
          what: 'the command to begin',
        });
        const response = await client.fetch(`/api/jobs/${id}`, { method: 'DELETE' });
        expect(response.status).toBe(202);
        const job = await waitForEnd(client, id, 6_000);
        expect(job).toMatchObject({ state: 'cancelled', error: { code: 'cancelled' } });
        expect((await readOutput(client, id)).toString()).toBe('begun\n');
        expect((await client.fetch(`/api/jobs/${id}`, { method: 'DELETE' })).status).toBe(409);
      });

      test('the same Idempotency-Key runs it once, another body under it is refused', async () => {
        const launch = (command: string) =>
          client.fetch('/api/remotes/launch', {
            method: 'POST',
            headers: { 'Idempotency-Key': `key-${form.name}-${kind.length}` },
            body: JSON.stringify({ sid: sid(), command }),
          });
        const ledger = `idempotent-${kind.replaceAll(' ', '-')}`;
        const answers = await Promise.all(
          [1, 2, 3].map(() => launch(`echo once >> "$HOME/${ledger}"; echo ok`)),
        );
        const bodies = (await Promise.all(answers.map(answer => answer.json()))) as {
          job: string;
        }[];
        expect(new Set(bodies.map(({ job }) => job)).size).toBe(1);
        expect(readFileSync(join(sshd.home, ledger), 'utf8')).toBe('once\n');
        const other = await launch('echo other');
        expect(other.status).toBe(409);
        expect(((await other.json()) as { code: string }).code).toBe('idempotency_conflict');
      });
    });
  }

  test('Prefer: wait=N answers 202 when the command takes longer', async () => {
    const response = await client.fetch('/api/remotes/launch', {
      method: 'POST',
      headers: { Prefer: 'wait=1' },
      body: JSON.stringify({ sid: withAgent, command: 'sleep 3; echo late' }),
    });
    expect(response.status).toBe(202);
    const { id } = (await response.json()) as Job;
    expect((await waitForEnd(client, id)).state).toBe('succeeded');
    expect((await readOutput(client, id)).toString()).toBe('late\n');
  });

  test('with an agent a killed worker loses and repeats nothing', async () => {
    const { id } = await launchAsync(client, withAgent, count(80, 'ledger'));
    await waitFor(async () => (await readOutput(client, id)).length > 100, {
      what: 'some lines',
    });
    process.kill(await holderOf(client, id), 'SIGKILL');
    expect(await waitForEnd(client, id)).toMatchObject({
      state: 'succeeded',
      result: { returncode: 0 },
    });
    expect((await readOutput(client, id)).toString()).toBe(lines(80));
    expect(readFileSync(join(sshd.home, 'ledger'), 'utf8')).toBe(lines(80, ''));
  });

  test('without an agent a killed worker leaves the outcome unknown and never a second run', async () => {
    const { id } = await launchAsync(client, plain, count(40, 'plain-ledger'));
    await waitFor(async () => (await readOutput(client, id)).length > 30, { what: 'some lines' });
    process.kill(await holderOf(client, id), 'SIGKILL');
    expect(await waitForEnd(client, id)).toMatchObject({
      state: 'failed',
      error: { code: 'outcome_unknown' },
    });
    const ledger = readFileSync(join(sshd.home, 'plain-ledger'), 'utf8').trim().split('\n');
    expect(new Set(ledger).size).toBe(ledger.length);
  });

  test('deleting a session cancels its jobs and hides it at once', async () => {
    const sid = await openSession(client, sshd);
    const { id } = await launchAsync(client, sid, 'echo on; sleep 60');
    await waitFor(async () => (await readOutput(client, id)).length > 0, {
      what: 'the command to begin',
    });
    const response = await client.fetch(`/remotes/${sid}`, { method: 'DELETE' });
    expect([response.status, response.statusText]).toEqual([204, 'Session deleted.']);
    expect(response.headers.get('Deprecation')).toMatch(/^@\d+$/);
    expect((await client.fetch(`/api/remotes/${sid}`)).status).toBe(404);
    const launched = await client.fetch('/api/remotes/launch', {
      method: 'POST',
      body: JSON.stringify({ sid, command: 'true' }),
    });
    expect(launched.status).toBe(404);
    expect((await waitForEnd(client, id, 6_000)).state).toBe('cancelled');
  });
});
