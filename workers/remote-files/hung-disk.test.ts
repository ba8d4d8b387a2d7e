import { afterAll, beforeAll, expect, test } from 'vitest';
import type { HostRow } from '../../shared/database/schema.ts';
import type { Hops } from '../../shared/ssh/hops.ts';
import { connectHere } from '../../test/harness/hosts/connect-here.ts';
import { makeHungDisk } from '../../test/harness/hosts/hung-disk.ts';
import { startTestSshd, type TestSshd } from '../../test/harness/hosts/sshd.ts';
import { describeUnless, missingPrograms } from '../../test/harness/skip.ts';
import { RemoteSession, type SessionSettings } from '../ssh/remote-session.ts';
import { listDirectory } from './list-directory.ts';
import { openSftp } from './sftp-requests.ts';

const patient = new AbortController().signal;
/** More than a connection has. */
const MANY = 9;

describeUnless(missingPrograms('sshd'), 'a host whose disk does not answer', () => {
  const disk = makeHungDisk();
  let sshd: TestSshd;
  beforeAll(async () => {
    sshd = await startTestSshd({ lines: [disk.line] });
    disk.hang();
  });
  afterAll(async () => {
    await sshd?.stop();
    disk.remove();
  });

  async function openSession(settings: Partial<SessionSettings> = {}): Promise<RemoteSession> {
    const { port, hostKey, username, privateKey } = sshd;
    const host = { name: 'one', address: '127.0.0.1', port, keys: [hostKey], private: true };
    const login = { hops: [host as HostRow] as Hops, username, credential: { privateKey } };
    const given = { spoolLimitBytes: 2 ** 30, shell: undefined, ...settings };
    return new RemoteSession(await connectHere(login, patient), given);
  }

  /** Gives a listing up that waits for the disk; what it ends with. */
  async function giveUp(session: RemoteSession): Promise<unknown> {
    const cancel = new AbortController();
    const channel = await openSftp(session, cancel.signal);
    const handle = channel.request('handle', done => channel.sftp.opendir('/', done));
    cancel.abort(new Error('cancelled'));
    return handle.catch((error: unknown) => error);
  }

  test('a cancel ends what waits for it at once', { timeout: 10_000 }, async () => {
    const session = await openSession();
    expect(await giveUp(session)).toMatchObject({ message: 'cancelled' });
    const cancel = new AbortController();
    const entries = listDirectory(session, '/', cancel.signal).next();
    setImmediate(() => cancel.abort(new Error('cancelled')));
    await expect(entries).rejects.toThrow('cancelled');
    session.close();
  });

  test('a request that is never answered ends by a limit', { timeout: 10_000 }, async () => {
    const session = await openSession();
    const { sftp, request } = await openSftp(session, patient, { answerMs: 200 });
    const error = { code: 'time_limit', hint: expect.stringContaining('disk') };
    await expect(request('handle', done => sftp.opendir('/', done))).rejects.toMatchObject(error);
    await expect(request('handle', done => sftp.opendir('/', done))).rejects.toMatchObject(error);
    session.close();
  });

  test('where no channel is left but those that hang, the next one is refused and does not wait', {
    timeout: 20_000,
  }, async () => {
    const session = await openSession({ closeMs: 200 });
    const held = await session.exec('cat');
    for (let n = 1; n < MANY; n++) await giveUp(session);
    await session.hung;
    const next = session.exec('true');
    held.stdin.end();
    held.stdout.resume();
    // The one that a living command had.
    const channel = await next;
    channel.stdout.resume();
    await channel.closed;
    await giveUp(session);
    await expect(session.exec('true')).rejects.toMatchObject({
      code: 'remote_connection_failed',
      hint: expect.stringContaining('hang'),
    });
    session.close();
  });
});
