import { expect } from 'vitest';
import { openStackDatabase } from '../../harness/databases/database.ts';
import { type Row, row } from '../row.ts';
import { basic } from '../send.ts';
import { expectAnswer, expectError, type Tools } from '../tools.ts';

const at = (words: string) => `Remote sessions, launch: ${words}`;
const LAUNCH = 'POST /remotes/launch';
const ASYNC = { Prefer: 'respond-async' };

/** What a job may have failed with, and the status that a launch of it has. */
const ENDS = [
  ['output_limit', 400, 'Output limit reached'],
  ['time_limit', 400, 'Time limit reached'],
  ['remote_disk_full', 400, 'Remote disk full'],
  ['agent_problem', 400, 'Remote agent problem'],
  ['wrong_node', 400, 'The run is on another node'],
  ['remote_authentication_failed', 403, 'Remote authentication failed'],
  ['host_changed', 409, 'Host changed'],
  ['host_key_changed', 409, 'Host key changed'],
  ['remote_connection_failed', 500, 'Remote connection failed'],
  ['shell_unusable', 400, 'Shell unusable'],
  ['host_unsupported', 400, 'Host unsupported'],
  ['agent_startup_failed', 500, 'Agent startup failed'],
  ['startup_files_print', 500, 'Start-up files print'],
  ['outcome_unknown', 500, 'Outcome unknown'],
  ['worker_lost', 500, 'Workers were lost'],
] as const;

/** Starts a command that runs until it is cancelled. */
async function startLong({ ask, make, world }: Tools) {
  const headers = { ...ASYNC, 'Idempotency-Key': world.name('launch') };
  const json = { sid: await make.session(), command: 'exec sleep 600' };
  const started = await ask('POST', '/remotes/launch', { json, headers });
  expectAnswer(started, 202);
  return { headers, json, id: String(started.json().id) };
}

/** What a launch answers when its job did not succeed, or was started before. */
export const LAUNCH_ENDS: Row[] = [
  row(at('404 for an unknown session'), LAUNCH, async ({ ask }) => {
    const json = { sid: '00000000000000000000000000', command: 'true' };
    expectError(await ask('POST', '/remotes/launch', { json }), 404, {
      title: 'Session does not exist or has timed out',
    });
  }),
  row(
    at("a launch whose job did not succeed answers with the job's code and Location"),
    LAUNCH,
    async tools => {
      const { ask, make, ended, world } = tools;
      const { headers, json, id } = await startLong(tools);
      await make.call('DELETE', `/jobs/${id}`);
      await ended(id);
      const database = openStackDatabase(world.stack);
      try {
        // How a job comes to each of these ends is held by other tests: here, what is answered then.
        for (const [code, status, title] of ENDS) {
          const error = { code, detail: `${title}: so it was.`, hint: 'Do this.' };
          await database`update jobs set state = 'failed', version = version + 1,
            error = ${database.json(error)} where id = ${id}`;
          const answer = await ask('POST', '/remotes/launch', { json, headers });
          const problem = expectError(answer, status, { code, title });
          expect(problem).toMatchObject({ detail: error.detail, hint: error.hint });
          expect(answer.headers.location).toBe(`/api/jobs/${id}`);
        }
      } finally {
        await database.end();
      }
    },
    'host',
  ),
  row(
    at('Idempotency-Key while the job runs: the same again is the same job, with another body 409'),
    `${LAUNCH}, GET /jobs/{id}`,
    async tools => {
      const { ask, make, ended } = tools;
      const { headers, json, id } = await startLong(tools);
      const again = await Promise.all(
        [1, 2].map(() => ask('POST', '/remotes/launch', { json, headers })),
      );
      for (const answer of again) {
        expectAnswer(answer, 202);
        expect(answer.json()).toMatchObject({ id });
        expect(answer.headers.location).toBe(`/api/jobs/${id}`);
      }
      const other = { headers, json: { ...json, command: 'true' } };
      expectError(await ask('POST', '/remotes/launch', other), 409, {
        code: 'idempotency_conflict',
      });
      // A new key is a new request.
      const fresh = { json, headers: { ...headers, 'Idempotency-Key': `${id}-2` } };
      const second = String((await ask('POST', '/remotes/launch', fresh)).json().id);
      expect(second).not.toBe(id);
      for (const job of [id, second]) {
        await make.call('DELETE', `/jobs/${job}`);
        expect(await ended(job)).toMatchObject({ state: 'cancelled' });
      }
    },
    'host',
  ),
  row(
    at('a client that leaves cancels nothing'),
    'GET /jobs',
    async ({ ask, poll, make, ended, world, prefix }) => {
      const mark = `${await make.folder()}/${world.name('go-on')}`;
      const sid = await make.newSession();
      const command = `until [ -e ${mark} ]; do sleep 0.1; done`;
      const leaving = new AbortController();
      const held = fetch(`${world.url}${prefix}/remotes/launch`, {
        method: 'POST',
        signal: leaving.signal,
        headers: { Authorization: basic(world.user), 'Content-Type': 'application/json' },
        body: JSON.stringify({ sid, command }),
      });
      type Item = { id: string; session: string; state: string };
      const isIts = (item: Item) => item.session === sid && item.state === 'running';
      const listed = await poll('/jobs?limit=20', answer =>
        answer.json<{ items: Item[] }>().items.some(isIts),
      );
      const id = String(listed.json<{ items: Item[] }>().items.find(isIts)?.id);
      leaving.abort();
      await expect(held).rejects.toThrow();
      await make.run(`touch ${mark}`);
      expect(await ended(id)).toMatchObject({ state: 'succeeded', result: { returncode: 0 } });
      await ask('GET', '/jobs');
      await make.call('DELETE', `/remotes/${sid}`);
    },
    'host',
  ),
];
