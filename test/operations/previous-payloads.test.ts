import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { JOB_KINDS, JOBS, type JobKind, requestSchema } from '../../shared/jobs/catalog.ts';
import { type SupportedVersions, versionNeeded } from '../../shared/jobs/payload-versions.ts';
import { describeUnless } from '../harness/skip.ts';
import {
  buildPreviousRelease,
  missingPreviousRelease,
} from '../harness/stacks/previous-release.ts';

/** The catalog of the previous release. Until 2026-11 one schema was for what is sent and what is stored. */
interface Previous {
  JOBS: Partial<Record<JobKind, { payload: z.ZodType }>>;
  requestSchema?: (kind: JobKind) => z.ZodType;
}

const video = { type: 'video/mp4', fps: 25 };

/** What clients send, or sent: of each kind of the previous release, with the forms that changes of rules are about. */
const CORPUS: Partial<Record<JobKind, object[]>> = {
  connect: [{}, { address: null }, { address: '192.0.2.1' }],
  answer: [{ challenge: 'a' }, { challenge: 'a', address: '192.0.2.1' }],
  'scan-host': [{ address: 'host', port: 22, private: true }],
  command: [
    { command: 'true' },
    { command: 'cat', cwd: 'run', env: { A: 'b' }, stdin: 'x', timeout: 0.5 },
    { command: 'true', cwd: '/run' },
    { command: 'true', cwd: '~/run' },
    { command: 'true', cwd: '~' },
  ],
  batch: [
    { command: 'true' },
    { command: '#SBATCH --mem=4G\n./simulate' },
    { script: './simulate' },
    { script: '\ufeff#!/bin/sh\ntrue' },
    { script: '#!/bin/sh\n#SBATCH -N1 -p debug\ntrue' },
    { command: 'true', options: ['-p debug'] },
    { command: 'true', options: ['-pdebug', '--gres=gpu:1'] },
    { command: 'true', cwd: '/run' },
    { command: 'true', cwd: '~/run' },
    { command: 'true', name: '' },
    { command: 'true', name: 'a\u001b[31m\nb' },
    {
      command: 'true',
      name: 'mine',
      env: { A: 'b' },
      nodes: 1,
      tasks: 2,
      cpus: 3,
      memory: 1 << 30,
      time: 60,
      queue: 'main',
      account: 'lab',
    },
  ],
  video: [
    { ...video, images: ['/d/a.png'] },
    { ...video, pattern: '/d/f%03d.png', first: 0, last: 9, step: 2 },
    { ...video, pattern: '/d/%d/f.png' },
    { ...video, pattern: '/d/*/f*.png' },
    { ...video, pattern: '/d/50%damping/f%03d.png' },
    { ...video, pattern: '/d/%d/f*.png' },
    {
      ...video,
      images: ['/d/a.png'],
      codec: 'av1',
      background: '#ffffff',
      onBadFrame: 'skip',
      label: 'name',
      width: 640,
      quality: 0.5,
      encode: 'worker',
      cache: { project: 'p', key: 'k' },
    },
  ],
  browse: [{ path: '/d' }],
  file: [
    { path: '/d/f', headOnly: true },
    { path: '/d/f', headOnly: false, range: { first: 1, last: 2 }, ifRange: '"a"' },
    { path: '/d/f', headOnly: false, range: { suffix: 5 } },
  ],
  'write-file': [
    { path: '/d/f', object: 'o', size: 1, digest: 'd', parents: true, exclusive: false },
    {
      path: '/d/f',
      object: 'o',
      size: 1,
      digest: 'd',
      mode: 0o640,
      parents: false,
      exclusive: true,
      ifMatch: ['"a"'],
    },
  ],
  'remove-file': [{ path: '/d/f' }, { path: '/d/f', ifMatch: ['*'] }],
  copy: [{ upload: 'u', file: 0, part: 1, path: '/d/f' }],
  parse: [{ upload: 'u' }],
  view: [
    {
      view: 'v',
      source: 's',
      sort: [{ column: 'a', descending: true }],
      filter: [{ column: 'a', op: 'ge', value: '1' }],
      groups: { by: ['a'], aggregates: [{ op: 'count' }, { op: 'sum', column: 'b' }] },
    },
  ],
};
interface Case {
  kind: JobKind;
  payload: object;
}
const CASES = JOB_KINDS.flatMap(kind =>
  (CORPUS[kind] ?? []).map((payload): [string, Case] => [
    `${kind} ${JSON.stringify(payload)}`,
    { kind, payload },
  ]),
);

describeUnless(missingPreviousRelease(), 'payloads of the previous release and this one', () => {
  let previous: Previous;
  let supported: SupportedVersions;
  beforeAll(async () => {
    const folder = join(buildPreviousRelease(), 'shared', 'jobs');
    const read = (name: string) => import(/* @vite-ignore */ join(folder, name));
    previous = (await read('catalog.ts')) as Previous;
    supported = ((await read('payload-versions.ts')) as { UNDERSTOOD: SupportedVersions })
      .UNDERSTOOD;
  });

  /** What its workers read; a kind that it does not have is left to new ones. */
  const readBefore = (kind: JobKind) => previous.JOBS[kind]?.payload ?? z.never();
  const sentBefore = ({ kind, payload }: Case) =>
    (previous.requestSchema?.(kind) ?? readBefore(kind)).safeParse(payload);
  const sentNow = ({ kind, payload }: Case) => requestSchema(kind).safeParse(payload);

  test('each of its kinds has some here', () => {
    expect(Object.keys(CORPUS)).toEqual(expect.arrayContaining(Object.keys(previous.JOBS)));
  });

  test.each(CASES)('%s is sent by clients of one of them', (_, given) => {
    expect(sentBefore(given).success || sentNow(given).success).toBe(true);
  });

  test.each(CASES)('%s is read if the previous release stored it', (_, given) => {
    const { success, data } = sentBefore(given);
    if (success) expect(JOBS[given.kind].payload.safeParse(data)).toEqual({ success: true, data });
  });

  test.each(CASES)(
    '%s is done by workers of the previous release, or left to others',
    (_, given) => {
      // Also of one that is repeated by an API of this release, whose rules are others.
      const data = JOBS[given.kind].payload.parse(given.payload);
      if (versionNeeded(given.kind, data) <= (supported[given.kind] ?? 0))
        expect(readBefore(given.kind).safeParse(data)).toEqual({ success: true, data });
    },
  );
});
