import { afterAll, beforeAll, expect, test } from 'vitest';
import type { HostRow } from '../../shared/database/schema.ts';
import { connectHere } from '../../test/harness/hosts/connect-here.ts';
import { startTestSshd, type TestSshd } from '../../test/harness/hosts/sshd.ts';
import { describeUnless, missingPrograms } from '../../test/harness/skip.ts';
import { RemoteSession, type SessionSettings } from './remote-session.ts';

const patient = new AbortController().signal;

describeUnless(missingPrograms('sshd'), 'a server with MaxSessions 1', () => {
  let sshd: TestSshd;
  beforeAll(async () => {
    sshd = await startTestSshd({ lines: ['MaxSessions 1'] });
  });
  afterAll(() => sshd?.stop());

  async function open(settings: Partial<SessionSettings> = {}): Promise<RemoteSession> {
    const { port, hostKey, username, privateKey } = sshd;
    const host = { name: 'one', address: '127.0.0.1', port, keys: [hostKey], private: true };
    const client = await connectHere(
      { hops: [host as HostRow], username, credential: { privateKey } },
      patient,
    );
    return new RemoteSession(client, { spoolLimitBytes: 2 ** 30, shell: undefined, ...settings });
  }

  async function print(session: RemoteSession, word: string): Promise<string> {
    const channel = await session.exec(`echo ${word}`);
    channel.stdin.end();
    let text = '';
    for await (const bytes of channel.stdout) text += bytes;
    await channel.closed;
    return text;
  }

  test('runs one command after the other, however many are asked for at once', async () => {
    const warnings: Error[] = [];
    const note = (warning: Error) => void warnings.push(warning);
    process.on('warning', note);
    const session = await open();
    const words = Array.from({ length: 20 }, (_, n) => `word${n}`);
    expect(await Promise.all(words.map(word => print(session, word)))).toEqual(
      words.map(word => `${word}\n`),
    );
    session.close();
    process.off('warning', note);
    // Such as of listeners on the connection, of which each channel must not have one.
    expect(warnings).toEqual([]);
  });

  test('a limit that was lowered before the agent began holds nobody back for the place of its channel', async () => {
    const session = await open({ loweredMs: 3_600_000 });
    const held = await session.exec('cat');
    // Refused, so the limit is one channel.
    const second = print(session, 'second');
    held.stdin.end();
    held.stdout.resume();
    expect(await second).toBe('second\n');
    await session.agent();
    await expect(session.exec('true')).rejects.toMatchObject({ code: 'agent_problem' });
    session.close();
  });

  test('serves an agent; what needs a channel beside it is refused with a remedy, and commands go on', async () => {
    const session = await open();
    const agent = await session.agent();
    await expect(session.exec('true')).rejects.toMatchObject({
      code: 'agent_problem',
      hint: expect.stringContaining('MaxSessions'),
    });
    await expect(session.sftp()).rejects.toMatchObject({ code: 'agent_problem' });
    const types: string[] = [];
    for await (const { type } of agent.run({ id: 'one', token: 'one', command: 'echo a' }))
      types.push(type);
    expect(types).toEqual(['running', 'output', 'ended']);
    session.close();
  });
});
