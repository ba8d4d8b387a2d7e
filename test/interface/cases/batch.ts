import { expect } from 'vitest';
import { type Row, row } from '../row.ts';
import { expectAnswer, expectError } from '../tools.ts';

const at = (words: string) => `Remote sessions, batch: ${words}`;
const BATCH_JOBS = 'POST /remotes/{sid}/batch';

/** What POST /remotes/(sid)/batch refuses. What it does is held by tests with a batch system. */
export const BATCH: Row[] = [
  row(at('404 for an unknown session'), BATCH_JOBS, async ({ ask }) => {
    const json = { command: 'true' };
    expectError(await ask('POST', '/remotes/00000000000000000000000000/batch', { json }), 404, {
      title: 'Session does not exist or has timed out',
    });
  }),
  row(
    at('what is missing or wrong is 400: exactly one of command and script, options of ours'),
    BATCH_JOBS,
    async ({ ask, make }) => {
      const path = `/remotes/${await make.session()}/batch`;
      for (const [json, field] of [
        [{}, 'command'],
        [{ command: 'true', script: 'true' }, 'command'],
        [{ command: 'true', cwd: 'relative' }, 'cwd'],
        [{ command: 'true', name: '' }, 'name'],
        [{ command: 'true', name: 'a\u001b[31m\nb' }, 'name'],
        [{ command: 'true', nodes: 0 }, 'nodes'],
        [{ command: 'true', time: 1.5 }, 'time'],
        [{ command: 'true', env: { 'no name': '' } }, 'env'],
        [{ command: 'true', options: ['--output=/etc/passwd'] }, 'options'],
        [{ command: 'true', options: ['-Jname'] }, 'options'],
        [{ command: 'true', options: ['--arr=1-9'] }, 'options'],
        [{ command: 'true', options: ['--requeue'] }, 'options'],
        [{ command: 'true', options: ['--wrap=true'] }, 'options'],
        [{ command: 'true', options: ['elsewhere.sh'] }, 'options'],
        [{ script: '#!/bin/sh\n#SBATCH --array=1-9\ntrue\n' }, 'script'],
      ] as const) {
        const answer = await ask('POST', path, { json });
        expectError(answer, 400, { code: 'invalid_input' });
        expect([json, answer.text]).toEqual([json, expect.stringContaining(field)]);
      }
    },
    'host',
  ),
  row(
    at(
      '202, a job of kind batch; 400 where the host has no engine; GET /remotes/(sid) adds engines',
    ),
    `${BATCH_JOBS}, GET /remotes/{sid}`,
    async ({ ask, look, make, ended }) => {
      const sid = await make.session();
      const { engines } = (await look('GET', `/remotes/${sid}`)).json<{ engines: string[] }>();
      expect([[], ['slurm']]).toContainEqual(engines);
      const answer = await ask('POST', `/remotes/${sid}/batch`, { json: { command: 'true' } });
      if (engines.length === 0) return void expectError(answer, 400, { code: 'batch_unavailable' });
      expectAnswer(answer, 202, { json: expect.objectContaining({ kind: 'batch', batch: null }) });
      const { id } = answer.json<{ id: string }>();
      expect(answer.headers.location).toBe(`/api/jobs/${id}`);
      // A batch system that is there in name only may have refused it by now: not asked to be compared.
      expect([202, 409]).toContain((await look('DELETE', `/jobs/${id}`)).status);
      expect((await ended(id)).state).toMatch(/^(cancelled|failed)$/);
    },
    'host',
  ),
];
