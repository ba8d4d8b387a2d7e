import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findSftpServer } from '../../../servers/sshd.ts';
import { makeTempDir } from '../files/temp-dir.ts';

export interface HungDisk {
  /** The line of sshd_config. */
  line: string;
  hang(): void;
  heal(): void;
  remove(): void;
}

/**
 * An SFTP server that neither answers nor ends while its disk hangs, so that sshd closes no channel of it. A real
 * process in state D ignores every signal in the same way.
 */
export function makeHungDisk(): HungDisk {
  const directory = makeTempDir('hung-disk');
  const mark = join(directory.path, 'hung');
  const program = join(directory.path, 'sftp-server');
  // SSH_FXP_VERSION 3 of draft-ietf-secsh-filexfer-02, section 4.
  const script = `#!/bin/sh
[ -e '${mark}' ] || exec ${findSftpServer()}
printf '\\000\\000\\000\\005\\002\\000\\000\\000\\003'
exec sleep 600
`;
  writeFileSync(program, script, { mode: 0o755 });
  return {
    line: `Subsystem sftp ${program}`,
    hang: () => writeFileSync(mark, ''),
    heal: () => rmSync(mark),
    remove: () => directory.remove(),
  };
}
