import { chmodSync, chownSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findSftpServer } from '../../servers/sshd.ts';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import { openRemoteSession, writeText } from '../../test/harness/hosts/remote-files.ts';
import { startTestSshd, type TestSshd } from '../../test/harness/hosts/sshd.ts';
import { describeUnless, missingPrograms } from '../../test/harness/skip.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';

/** One that this account may give to a file, and does not by itself. */
const group =
  process.getuid?.() === 0 ? 4242 : process.getgroups?.().find(id => id !== process.getgid?.());

/**
 * An SFTP server that refuses to change owners: SSH_FXP_FSETSTAT (10) with SSH_FILEXFER_ATTR_UIDGID (2), of
 * draft-ietf-secsh-filexfer-02, sections 3 and 5, is answered with a status (101).
 */
const strictServer = () => `#!${process.execPath}
const { spawn } = require('node:child_process');
const server = spawn('${findSftpServer()}', { stdio: ['pipe', 'inherit', 'inherit'] });
let rest = Buffer.alloc(0);
process.stdin.on('data', bytes => {
  rest = Buffer.concat([rest, bytes]);
  while (rest.length > 4 && rest.length >= 4 + rest.readUInt32BE()) {
    const packet = rest.subarray(0, 4 + rest.readUInt32BE());
    rest = rest.subarray(packet.length);
    const changesOwner = packet[4] === 10 && packet.readUInt32BE(13 + packet.readUInt32BE(9)) & 2;
    if (!changesOwner) server.stdin.write(packet);
    else {
      const answer = Buffer.alloc(21);
      answer.writeUInt32BE(17);
      answer[4] = 101;
      packet.copy(answer, 5, 5, 9);
      answer.writeUInt32BE(3, 9);
      process.stdout.write(answer);
    }
  }
});
process.stdin.on('end', () => server.stdin.end());
`;

const cannot = missingPrograms('sshd') ?? {
  reason: 'needs root, or an account with a second group',
  obtainable: false,
};

describeUnless(group === undefined ? cannot : missingPrograms('sshd'), 'a replaced file', () => {
  const directory = makeTempDir('strict-sftp');
  const hosts: TestSshd[] = [];
  const sessions: RemoteSession[] = [];
  beforeAll(async () => {
    const program = join(directory.path, 'sftp-server');
    writeFileSync(program, strictServer(), { mode: 0o755 });
    for (const lines of [[], [`Subsystem sftp ${program}`]]) {
      const host = await startTestSshd({ lines });
      hosts.push(host);
      sessions.push(await openRemoteSession(host));
    }
  });
  afterAll(async () => {
    for (const session of sessions) session.close();
    for (const host of hosts) await host.stop();
    directory.remove();
  });

  /** The group and the permissions of a file of this mode after it was replaced. */
  async function replace(host: number, before: number, mode?: number) {
    const [{ home }, session] = [hosts[host] as TestSshd, sessions[host] as RemoteSession];
    const path = join(home, 'shared');
    writeFileSync(path, 'before');
    chownSync(path, -1, group as number);
    chmodSync(path, before);
    expect(await writeText(session, path, 'after', { mode })).toEqual({ created: false });
    const { gid, mode: after } = statSync(path);
    return [gid === group ? 'its group' : 'another', after & 0o7777];
  }

  test('keeps its group with the permissions', async () => {
    expect(await replace(0, 0o640)).toEqual(['its group', 0o640]);
    expect(await replace(0, 0o2750)).toEqual(['its group', 0o2750]);
    expect(await replace(0, 0o640, 0o664)).toEqual(['its group', 0o664]);
  });

  test('gives no rights of a group to another one', async () => {
    expect(await replace(1, 0o640)).toEqual(['another', 0o600]);
    expect(await replace(1, 0o2755)).toEqual(['another', 0o705]);
    // They are asked for.
    expect(await replace(1, 0o640, 0o664)).toEqual(['another', 0o664]);
  });
});
