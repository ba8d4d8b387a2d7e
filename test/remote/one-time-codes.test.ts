import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { expectProblem } from '../harness/clients/problem.ts';
import { openStackDatabase } from '../harness/databases/database.ts';
import { drawFilm } from '../harness/files/segmented-videos.ts';
import { type CodeHost, startCodeHost } from '../harness/hosts/pam-sshd.ts';
import { addHost, type Job, launchAsync, readOutput, waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms, missingRoot } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

interface Challenge {
  sid: string;
  challenge: string;
  instruction: string;
  prompts: { text: string; echo: boolean }[];
  expires: string;
}

const skip = missingRoot() ?? missingPrograms('sshd', 'ffmpeg', 'google-authenticator');

/** All at once, for they wait more than they work: each has a host of its own. */
describeStack(skip, 'one-time codes', form => {
  const { stack, client } = useStack(form);
  let made = 0;

  async function withHost(
    options: { lines?: string[]; asksPassword?: boolean },
    work: (host: CodeHost & { name: string }) => Promise<void>,
  ): Promise<void> {
    const host = await startCodeHost(options);
    try {
      const name = await addHost(client, host.sshd, { name: `codes-${process.pid}-${++made}` });
      await work({ ...host, name });
    } finally {
      await host.stop();
    }
  }
  const post = (path: string, body: object) =>
    client.fetch(`/api/remotes${path}`, { method: 'POST', body: JSON.stringify(body) });
  const expectChallenge = async (answer: Response): Promise<Challenge> => {
    expect([answer.status, answer.headers.get('Location')]).toEqual([
      202,
      expect.stringMatching(/^\/api\/remotes\/\w+$/),
    ]);
    const challenge = (await answer.json()) as Challenge;
    const left = new Date(challenge.expires).getTime() - Date.now();
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(90_000);
    return challenge;
  };
  const answer = ({ sid, challenge }: Challenge, ...answers: string[]) =>
    post(`/${sid}/answers`, { challenge, answers });
  const stateOf = async (sid: string) =>
    (await client.get<{ state: string }>(`/api/remotes/${sid}`)).state;
  const run = async (sid: string, command: string) =>
    (await client.post<{ output: string }>('/api/remotes/launch', { sid, command })).output;

  const CASES = [
    { what: 'a code alone', options: {}, login: () => ({}), asked: ['Verification code: '] },
    {
      what: 'a password, then a code',
      options: { asksPassword: true },
      login: ({ account }: CodeHost) => ({ password: account.password }),
      asked: ['Verification code: '],
    },
    {
      what: 'a key, then a code',
      options: { lines: ['AuthenticationMethods publickey,keyboard-interactive'] },
      login: ({ sshd }: CodeHost) => ({ privateKey: sshd.privateKey }),
      asked: ['Verification code: '],
    },
  ];
  for (const { what, options, login, asked } of CASES) {
    test.concurrent(`a host that wants ${what} is answered by its user, once`, async () => {
      await withHost(options, async host => {
        const body = { hostname: host.name, username: host.account.username, ...login(host) };
        const first = await expectChallenge(await post('', body));
        expect(first.prompts).toEqual(asked.map(text => ({ text, echo: false })));
        expect(await stateOf(first.sid)).toBe('challenge');
        const early = await post('/launch', { sid: first.sid, command: 'true' });
        await expectProblem(early, 409, 'conflict');
        const wrong = await answer(first, '1', '2');
        expect((await expectProblem(wrong, 400, 'invalid_input')).detail).toContain('1 prompt');
        const code = host.nextCode();
        const opened = await answer(first, code);
        expect([opened.status, await opened.json()]).toEqual([200, { sid: first.sid }]);
        expect(await stateOf(first.sid)).toBe('open');
        expect(await run(first.sid, 'echo in')).toBe('in\n');
        await expectProblem(await answer(first, code), 409, 'challenge_expired');

        const second = await expectChallenge(await post('', body));
        // A code is good for one login.
        const refused = await answer(second, code);
        await expectProblem(refused, 403, 'remote_authentication_failed');
        const failures = () => host.sshd.log().match(/PAM: Authentication failure/g)?.length;
        expect(failures()).toBe(1);
      });
    });
  }

  test.concurrent('what nobody answers in time has expired, and a session in a challenge can be ended', async () => {
    await withHost({}, async ({ name, account, nextCode }) => {
      const body = { hostname: name, username: account.username };
      const ended = await expectChallenge(await post('', body));
      await client.delete(`/api/remotes/${ended.sid}`);
      await expectProblem(await answer(ended, nextCode()), 404, 'session_not_found');
      const late = await expectChallenge(await post('', body));
      await expectProblem(
        await answer({ ...late, challenge: ended.challenge }, nextCode()),
        409,
        'challenge_expired',
      );
      const sql = openStackDatabase(stack);
      // What was never open is not closed.
      const told = await sql`
        select from audit_pending where action = 'session.close' and target like ${`${ended.sid}%`}
        union all select from audit_entries where action = 'session.close' and target like ${`${ended.sid}%`}`;
      expect(told).toHaveLength(0);
      await sql`update sessions set challenge_expires = now() - interval '1 second' where sid = ${late.sid}`;
      await sql.end();
      await expectProblem(await answer(late, nextCode()), 409, 'challenge_expired');
    });
  });

  test.concurrent('a lost connection is made again by the user: what waits waits, and what runs goes on', async () => {
    await withHost({}, async ({ name, account, sshd, nextCode }) => {
      const body = { hostname: name, username: account.username };
      const { sid, ...challenge } = await expectChallenge(await post('', body));
      expect((await answer({ sid, ...challenge }, nextCode())).status).toBe(200);
      const count = join(account.home, 'count');
      const go = join(account.home, 'go');
      const running = await launchAsync(
        client,
        sid,
        `echo x >>${count}; echo begun; while ! test -e ${go}; do sleep 0.2; done; echo done`,
      );
      await waitFor(async () => String(await readOutput(client, running.id)) === 'begun\n', {
        what: 'the command to run',
        timeoutMs: 30_000,
      });
      sshd.disconnect();
      await waitFor(async () => (await stateOf(sid)) === 'reconnect', {
        what: 'the loss to be told',
        timeoutMs: 40_000,
      });
      const waiting = await launchAsync(client, sid, `echo x >>${count}; touch ${go}; echo late`);
      await waitFor(
        async () => {
          const sql = openStackDatabase(stack);
          const rows =
            await sql`select 1 from jobs where id = ${waiting.id} and unreachable_since is not null`;
          await sql.end();
          return rows.length === 1;
        },
        { what: 'a worker to find that it must wait', timeoutMs: 30_000 },
      );
      expect((await client.get<Job>(`/api/jobs/${waiting.id}`)).state).toMatch(/queued|running/);
      expect(existsSync(go)).toBe(false);
      // A refused code ends nothing: the user tries again with the next one.
      const refused = await expectChallenge(await post(`/${sid}/login`, {}));
      expect(refused.sid).toBe(sid);
      await expectProblem(await answer(refused, '000000'), 403, 'remote_authentication_failed');
      const again = await expectChallenge(await post(`/${sid}/login`, {}));
      expect((await answer(again, nextCode())).status).toBe(200);
      expect(await stateOf(sid)).toBe('open');
      for (const { id, output } of [
        { id: waiting.id, output: 'late\n' },
        { id: running.id, output: 'begun\ndone\n' },
      ]) {
        const job = await waitForEnd(client, id, 60_000);
        expect([job.state, job.error]).toEqual(['succeeded', null]);
        expect(String(await readOutput(client, id))).toBe(output);
      }
      expect(readFileSync(count, 'utf8')).toBe('x\nx\n');
      await expectProblem(
        await post(`/${sid}/login`, { password: 'x', privateKey: 'y' }),
        400,
        'invalid_input',
      );
    });
  });

  /** A batch system of one command, which starts each job at once. */
  function offerBatchSystem({ account }: CodeHost): void {
    const bin = join(account.home, 'bin');
    mkdirSync(bin);
    const sbatch = `#!/bin/bash
      for word; do
        case $word in --output=*) out=\${word#*=} ;; --error=*) err=\${word#*=} ;; esac
      done
      setsid sh "\${@: -2}" </dev/null >"$out" 2>"$err" &
      echo 7
    `;
    writeFileSync(join(bin, 'sbatch'), sbatch, { mode: 0o755 });
    writeFileSync(join(account.home, '.bashrc'), `export PATH=${bin}:$PATH\n`);
  }

  test.concurrent('a command and a batch job that run are followed however late their user logs in again', async () => {
    await withHost({}, async host => {
      offerBatchSystem(host);
      const { name, account, sshd, nextCode } = host;
      const challenge = await expectChallenge(
        await post('', { hostname: name, username: account.username }),
      );
      const { sid } = challenge;
      expect((await answer(challenge, nextCode())).status).toBe(200);
      const go = join(account.home, 'go');
      const command = `echo begun; while ! test -e ${go}; do sleep 0.2; done; echo done`;
      const batch = await client.post<Job>(`/api/remotes/${sid}/batch`, { command });
      const running = await launchAsync(client, sid, command);
      const ids = [batch.id, running.id];
      for (const id of ids)
        await waitFor(async () => String(await readOutput(client, id)) === 'begun\n', {
          what: `job ${id} to run`,
          timeoutMs: 60_000,
        });
      sshd.disconnect();
      const sql = openStackDatabase(stack);
      try {
        for (const id of ids) {
          const age = () => sql<{ epoch: number }[]>`
            update jobs set unreachable_since = now() - interval '13 hours', not_before = now()
            where id = ${id} and lease_token is null and unreachable_since is not null returning epoch`;
          const { epoch } = await waitFor(async () => (await age())[0], {
            what: `job ${id} to wait`,
            timeoutMs: 90_000,
            intervalMs: 50,
          });
          const isAttempted = async () => {
            const [row] = await sql`select epoch, lease_token from jobs where id = ${id}`;
            return row?.epoch > epoch && row?.lease_token === null;
          };
          await waitFor(isAttempted, { what: `an attempt at job ${id}`, timeoutMs: 90_000 });
          const job = await client.get<Job>(`/api/jobs/${id}`);
          expect([job.state, job.error]).toEqual([expect.stringMatching(/queued|running/), null]);
        }
      } finally {
        await sql.end();
      }
      writeFileSync(go, '');
      const again = await expectChallenge(await post(`/${sid}/login`, {}));
      expect((await answer(again, nextCode())).status).toBe(200);
      for (const id of ids) {
        const job = await waitForEnd(client, id, 90_000);
        expect([job.state, job.error]).toEqual(['succeeded', null]);
        expect(String(await readOutput(client, id))).toBe('begun\ndone\n');
      }
    });
  });

  test.concurrent('a video that the host encodes is followed once its user has logged in again', async () => {
    await withHost({}, async ({ name, account, sshd, nextCode }) => {
      const body = { hostname: name, username: account.username };
      const challenge = await expectChallenge(await post('', body));
      const { sid } = challenge;
      expect((await answer(challenge, nextCode())).status).toBe(200);
      const images = drawFilm(join(account.home, 'film'), 3_000);
      const given = { 'content-type': 'video/mp4', encode: 'host', images };
      const { vsid } = (await (await post(`/${sid}/videos`, given)).json()) as { vsid: string };
      await waitFor(
        async () => {
          const { message } = await client.get<{ message: string }>(`/api/jobs/${vsid}`);
          return /^encoding: [1-9]/.test(message);
        },
        { what: 'the first pictures', timeoutMs: 60_000, intervalMs: 50 },
      );
      sshd.disconnect();
      const sql = openStackDatabase(stack);
      try {
        await waitFor(
          async () => {
            const [row] = await sql`select epoch, state from jobs where id = ${vsid}`;
            expect(row?.state).toMatch(/queued|running/);
            return row?.epoch > 2;
          },
          { what: 'two attempts to find that they must wait', timeoutMs: 90_000 },
        );
      } finally {
        await sql.end();
      }
      const again = await expectChallenge(await post(`/${sid}/login`, {}));
      expect((await answer(again, nextCode())).status).toBe(200);
      expect(await waitForEnd(client, vsid, 120_000)).toMatchObject({
        state: 'succeeded',
        result: { encoded: 'host', frames: images.length },
      });
    });
  });

  test.concurrent('after ten minutes without a login what waits has failed, and a session that needs none refuses it', async () => {
    await withHost({}, async ({ name, account, sshd, nextCode }) => {
      const body = { hostname: name, username: account.username };
      const challenge = await expectChallenge(await post('', body));
      const { sid } = challenge;
      expect((await answer(challenge, nextCode())).status).toBe(200);
      sshd.disconnect();
      const { id } = await launchAsync(client, sid, 'true');
      const sql = openStackDatabase(stack);
      try {
        await waitFor(
          async () =>
            (
              await sql`update jobs set unreachable_since = now() - interval '11 minutes'
                where id = ${id} and unreachable_since is not null returning id`
            ).length === 1,
          { what: 'the command to wait', timeoutMs: 40_000 },
        );
      } finally {
        await sql.end();
      }
      const job = await waitForEnd(client, id, 40_000);
      expect([job.state, job.error?.code]).toEqual(['failed', 'reconnect_required']);
      expect(await stateOf(sid)).toBe('reconnect');
      // Who may open no session there any more has none.
      await client.fetch(`/api/hosts/${name}`, {
        method: 'PUT',
        body: JSON.stringify({ users: [] }),
      });
      await expectProblem(await post(`/${sid}/login`, {}), 404, 'session_not_found');
    });
  });
});
