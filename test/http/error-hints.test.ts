import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ERRORS, type ErrorCode } from '../../shared/errors/errors.ts';
import type { Problem } from '../harness/clients/problem.ts';
import {
  beginUpload,
  finishUpload,
  makeModel,
  partPath,
  putPart,
} from '../harness/clients/uploads.ts';
import { drawFrames } from '../harness/files/draw-frames.ts';
import { addHost, connectClient, openSession, waitForEnd } from '../harness/hosts/remote.ts';
import { startTestSshd } from '../harness/hosts/sshd.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { REMOTE_CASES } from './error-hints/remote-cases.ts';
import { SIMPLE_CASES } from './error-hints/simple-cases.ts';
import type { World } from './error-hints/world.ts';

const CASES = { ...SIMPLE_CASES, ...REMOTE_CASES };

/** Codes whose hints are not tried here, and why. */
const ELSEWHERE: Partial<Record<ErrorCode, string>> = {
  agent_problem: 'the host must fail between two words of the agent: workers/host-agent/*.test.ts',
  remote_disk_full: 'takes a full disk on the host: test/remote/disks.test.ts',
  bad_frames:
    'ends a job, whose status says so; no request is answered with it: test/jobs/videos.test.ts',
  parse_failed:
    'ends a parse, which the upload tells; no request is answered with it: test/uploads/failed-parses.test.ts',
  video_failed: 'ends a job, whose status says so; the encoder must break: workers/video/*.test.ts',
  wrong_node: 'takes a second node behind one name: workers/host-agent/*.test.ts',
  locked: 'takes a copy that is under way: test/uploads/copies.test.ts',
  request_timeout: 'takes as long as the limit: test/http/endless-bodies.test.ts',
  internal: 'nobody knows how: its hint would be a test of its own',
  remote_connection_failed: 'takes a host that becomes unreachable and comes back: test/faults',
  account_unusable: 'takes an account that has expired: test/remote/logins.test.ts',
  challenge_expired: 'takes a host that asks for codes: test/remote/one-time-codes.test.ts',
  reconnect_required: 'takes a host that asks for codes: test/remote/one-time-codes.test.ts',
  batch_unavailable: 'takes a host without a batch system: test/remote/batch.test.ts',
  batch_refused: 'ends a batch job, with the words of its batch system: test/remote/batch.test.ts',
  batch_ended: 'ends a batch job that its batch system ended: test/remote/batch.test.ts',
  checksum_mismatch: 'takes a client that speaks tus: test/uploads/tus.test.ts',
  cwd_not_found: 'ends a command, and names the folder: test/remote/launch-options.test.ts',
  shell_unusable: 'takes an account that runs no command: test/remote/unusable-accounts.test.ts',
  host_unsupported: 'takes a host without /proc: test/remote/unusable-accounts.test.ts',
  sftp_unavailable: 'takes a host without SFTP: test/remote/unusable-accounts.test.ts',
  startup_files_print: 'takes an account with such files: workers/host-agent/bootstrap.test.ts',
  agent_startup_failed: 'takes a home that cannot be written: test/remote/disks.test.ts',
  outcome_unknown: 'takes a link that is lost while a command runs: test/faults',
  worker_lost: 'takes twenty dead workers: test/remote/worker-lost.test.ts',
  unavailable: 'takes a server that is down: test/operations/outages.test.ts',
};

test('each code has its hint tried, or a reason why not, and not both', () => {
  for (const code of Object.keys(ERRORS) as ErrorCode[])
    expect([code, Object.hasOwn(CASES, code) !== Object.hasOwn(ELSEWHERE, code)]).toEqual([
      code,
      true,
    ]);
  for (const code of [...Object.keys(CASES), ...Object.keys(ELSEWHERE)])
    expect(ERRORS).toHaveProperty([code]);
});

describeStack(missingPrograms('sshd', 'ffmpeg'), 'doing what a hint says', form => {
  let world: World;

  beforeAll(async () => {
    const limits = {
      LIMIT_UPLOADS: '5',
      LIMIT_COMMAND_SECONDS: '5',
      LIMIT_OUTPUT_BYTES: '1000000',
      LIMIT_PROJECT_BYTES: '1000000',
    };
    const [stack, sshd] = await Promise.all([form.start({ env: limits }), startTestSshd()]);
    const client = connectClient(stack);
    await addHost(client, sshd);
    const { pid, mid } = await makeModel(client);
    const sid = await openSession(client, sshd);
    const images = await drawFrames({ folder: join(sshd.home, 'frames'), count: 10 });
    world = { stack, client, sshd, sid, images, pid, mid };
    const upload = await beginUpload(client, mid, ['file']);
    await putPart(client, partPath(upload, 0, 0), new TextEncoder().encode('twelve bytes'));
    const { job } = (await (await finishUpload(client, upload, [1])).json()) as { job: string };
    expect((await waitForEnd(client, job)).state).toBe('succeeded');
  });
  afterAll(async () => {
    await world?.stack.stop();
    await world?.sshd.stop();
  });

  test.each(Object.entries(CASES))('%s', async (code, { provoke, hint, follow }) => {
    const refused = await provoke(world);
    const problem = (await refused.json()) as Problem;
    expect([refused.status, problem.code, problem.detail]).toEqual([
      ERRORS[code as ErrorCode].status,
      code,
      expect.any(String),
    ]);
    if (hint) expect(problem.hint).toMatch(hint);
    const told = refused.headers.get('X-Service-Hint');
    expect(told).toBe(problem.hint?.replace(/[^\x20-\x7e]+/g, '?') ?? null);
    const done = await follow(world, problem);
    expect([done.ok, done.ok ? '' : await done.text()]).toEqual([true, '']);
    await done.body?.cancel();
  });

  test('the type of a problem leads to its place on the page, with meaning and remedy', async () => {
    const refused = await fetch(`${world.stack.url}/api/jobs`);
    const { type } = (await refused.json()) as Problem;
    const link = new URL(type, refused.url);
    const page = await fetch(link);
    expect(page.headers.get('Content-Type')).toContain('text/html');
    const html = await page.text();
    expect(link.hash).toBe('#unauthorized');
    for (const [code, { status }] of Object.entries(ERRORS)) {
      const row = new RegExp(
        `<tr id="${code}"><td><code>${code}</code><td>${status}<td>(.*?)</tr>`,
      );
      const cells = row.exec(html)?.[1]?.split('<td>') ?? [];
      expect([code, cells.length]).toEqual([code, 3]);
      for (const cell of cells) expect(cell).toMatch(/\w/);
    }
    const ids = [...html.matchAll(/ id="([^"]*)"/g)].map(match => match[1]);
    expect(new Set(ids).size).toBe(ids.length);
  });
});
