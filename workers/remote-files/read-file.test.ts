import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { AgentHarness } from '../../test/harness/agent-harness.ts';
import { openRemoteFile } from './read-file.ts';

const harness = new AgentHarness();
afterAll(() => harness.clean());

test.each(['9'.repeat(60), '9007199254740993'])(
  'a file that a host says to be %s bytes long is none',
  async size => {
    const host = harness.makeHost('/bin/sh');
    const programs = join(host.account.home, 'bin');
    mkdirSync(programs);
    writeFileSync(join(programs, 'ls'), `#!/bin/sh\necho - 1 0 0 ${size} x\n`, { mode: 0o755 });
    const path = join(host.account.home, 'file');
    writeFileSync(path, 'text');
    host.account.env = { ...host.account.env, PATH: `${programs}:${host.account.env.PATH}` };
    await expect(openRemoteFile(host, { path })).rejects.toMatchObject({
      code: 'remote_connection_failed',
    });
  },
);
