import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { JobRow } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors/errors.ts';
import { openRemoteSession } from '../../test/harness/hosts/remote-files.ts';
import { startTestSshd, type TestSshd } from '../../test/harness/hosts/sshd.ts';
import { makeJobContext } from '../../test/harness/job-context.ts';
import { startTcpProxy, type TcpProxy } from '../../test/harness/servers/tcp-proxy.ts';
import { describeUnless, missingPrograms } from '../../test/harness/skip.ts';
import { nameTemporaries } from '../remote-files/name-temporaries.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';
import writeFile from './write-file.ts';

const CANCELLED = new WindlassError('cancelled');
const OBJECT = 'files/job/secret';

describeUnless(missingPrograms('sshd'), 'a write that is cancelled', () => {
  let sshd: TestSshd;
  let proxy: TcpProxy;
  let session: RemoteSession | undefined;
  let path: string;
  beforeAll(async () => {
    sshd = await startTestSshd();
    proxy = await startTcpProxy({ host: sshd.host, port: sshd.port });
    path = join(sshd.home, 'file');
  });
  afterAll(async () => {
    session?.close();
    await proxy?.stop();
    await sshd?.stop();
  });
  beforeEach(() => writeFileSync(path, 'before'));

  const left = () => readdirSync(sshd.home).filter(name => name.startsWith('.windlass-job'));
  const temporary = () =>
    join(
      sshd.home,
      `.windlass-${nameTemporaries({ id: 'job', epoch: 1, object: OBJECT }, 1).temporary}`,
    );

  const connect = async () => {
    session ??= await openRemoteSession({ ...sshd, port: proxy.port });
    return session;
  };

  function makeContext(
    signal: AbortSignal,
    row: Partial<JobRow> = {},
    { update = async () => {}, find = connect } = {},
  ) {
    const job: Partial<JobRow> = { id: 'job', kind: 'write-file', epoch: 1, ...row };
    return makeJobContext<'write-file'>({
      job,
      signal,
      update: async set => {
        Object.assign(job, set);
        await update();
      },
      payload: {
        path,
        object: OBJECT,
        size: 4,
        digest: createHash('sha256').update('text').digest('base64'),
        parents: false,
        exclusive: false,
      },
      worker: {
        objects: { get: async () => Readable.from([Buffer.from('text')]) },
        sessions: { find: () => undefined, use: async (_, __, work) => work(await find()) },
      },
    });
  }

  test('removes over another connection what a rename that comes late would publish', async () => {
    const cancel = new AbortController();
    // The intent is recorded, and the rename is sent into a link that swallows it.
    const update = async () => {
      proxy.forget();
      setImmediate(() => {
        cancel.abort(CANCELLED);
        session?.close();
        session = undefined;
      });
    };
    await expect(writeFile(makeContext(cancel.signal, {}, { update }))).rejects.toBe(CANCELLED);
    expect(left()).toEqual([]);
    expect(readFileSync(path, 'utf8')).toBe('before');
  });

  test('does so too where an earlier attempt could not', async () => {
    writeFileSync(temporary(), 'text');
    const again = makeContext(AbortSignal.abort(CANCELLED), { runAt: new Date() });
    await expect(writeFile(again)).rejects.toBe(CANCELLED);
    expect(left()).toEqual([]);
  });

  test('says that the file may still be written where its host stays unreachable', async () => {
    const find = async () => {
      throw new WindlassError('remote_connection_failed');
    };
    const row = { runAt: new Date(), unreachableSince: new Date(Date.now() - 120_000) };
    await expect(
      writeFile(makeContext(AbortSignal.abort(CANCELLED), row, { find })),
    ).rejects.toMatchObject({ code: 'cancelled', message: expect.stringContaining('may still') });
  });
});
