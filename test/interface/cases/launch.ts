import { expect } from 'vitest';
import { type Row, row } from '../row.ts';
import { expectAnswer, expectError } from '../tools.ts';

const at = (words: string) => `Remote sessions, launch: ${words}`;
const LAUNCH = 'POST /remotes/launch';

/** POST /remotes/launch, whose job succeeds, waits or is cancelled. */
export const LAUNCHES: Row[] = [
  row(
    at('200 whatever the exit code; returncode (128 + n for a signal), job, Location'),
    LAUNCH,
    async ({ ask, make }) => {
      const sid = await make.session();
      for (const [command, returncode] of [
        ['exit 3', 3],
        ['kill -TERM $$', 143],
      ]) {
        const answer = await ask('POST', '/remotes/launch', { json: { sid, command } });
        expectAnswer(answer, 200);
        const { job, ...rest } = answer.json();
        expect(rest).toEqual({ command, output: '', errors: '', returncode });
        expect(answer.headers.location).toBe(`/api/jobs/${job}`);
      }
    },
    'host',
  ),
  row(
    at('output is UTF-8, invalid bytes replaced'),
    LAUNCH,
    async ({ ask, make }) => {
      const json = { sid: await make.session(), command: "printf 'ü\\377.'" };
      const { output } = (await ask('POST', '/remotes/launch', { json })).json();
      expect(output).toBe('ü\ufffd.');
    },
    'host',
  ),
  row(
    at('up to 10 MiB each, truncated: true past it; the whole is at the output of the job'),
    `${LAUNCH}, GET /jobs/{id}/output`,
    async ({ ask, look, make }) => {
      const sid = await make.session();
      const much = 'head -c 11000000 /dev/zero | tr "\\0"';
      const command = `${much} o; (${much} e) >&2`;
      const answer = (await ask('POST', '/remotes/launch', { json: { sid, command } })).json<
        Record<'truncated' | 'output' | 'errors' | 'job', string>
      >();
      expect(answer.truncated).toBe(true);
      for (const [stream, text, letter] of [
        ['stdout', answer.output, 'o'],
        ['stderr', answer.errors, 'e'],
      ] as const) {
        expect(text === letter.repeat(10 << 20)).toBe(true);
        const whole = await look('GET', `/jobs/${answer.job}/output?stream=${stream}`);
        expect(whole.bytes.equals(Buffer.alloc(11_000_000, letter))).toBe(true);
      }
      const small = (
        await ask('POST', '/remotes/launch', { json: { sid, command: 'true' } })
      ).json();
      expect(small).not.toHaveProperty('truncated');
    },
    'host',
  ),
  row(
    at('Prefer: respond-async 202 with Location; Prefer: wait=N waits at most N s'),
    `${LAUNCH}, DELETE /jobs/{id}`,
    async ({ ask, make, ended }) => {
      const json = { sid: await make.session(), command: 'exec sleep 600' };
      for (const Prefer of ['respond-async', 'wait=1']) {
        const answer = await ask('POST', '/remotes/launch', { json, headers: { Prefer } });
        expectAnswer(answer, 202);
        expect(answer.headers['preference-applied']).toBe(Prefer);
        const { id } = answer.json();
        expect(answer.headers.location).toBe(`/api/jobs/${id}`);
        await make.call('DELETE', `/jobs/${id}`);
        expect(await ended(String(id))).toMatchObject({ state: 'cancelled' });
        expectError(await ask('DELETE', `/jobs/${id}`), 409, { code: 'conflict' });
      }
    },
    'host',
  ),
  row(
    at('409 with Location when its job was cancelled'),
    `${LAUNCH}, GET /jobs`,
    async ({ ask, poll, make, world }) => {
      const sid = await make.newSession();
      const json = { sid, command: `: ${world.name('held')}; exec sleep 600` };
      const held = ask('POST', '/remotes/launch', { json });
      type Item = { id: string; session: string; state: string };
      const isOpen = (item: Item) => item.session === sid && item.state === 'running';
      const listed = await poll('/jobs?limit=20', answer =>
        answer.json<{ items: Item[] }>().items.some(isOpen),
      );
      const id = listed.json<{ items: Item[] }>().items.find(isOpen)?.id;
      await make.call('DELETE', `/jobs/${id}`);
      const answer = await held;
      expectError(answer, 409, { code: 'cancelled' });
      expect(answer.headers.location).toBe(`/api/jobs/${id}`);
      await make.call('DELETE', `/remotes/${sid}`);
    },
    'host',
  ),
];
