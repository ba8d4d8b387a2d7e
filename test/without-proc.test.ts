import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Client } from '../demo/client.ts';
import { findMarked, makeMark } from './faults/trees.ts';
import { describeForms } from './harness/forms.ts';
import { hideProc, missingHiddenProc } from './harness/hidden-proc.ts';
import {
  addHost,
  connectClient,
  launchAsync,
  openSession,
  readOutput,
  waitForEnd,
} from './harness/remote.ts';
import { missingPrograms } from './harness/skip.ts';
import { startTestSshd, type TestSshd } from './harness/sshd.ts';
import type { Stack } from './harness/stack.ts';
import { makeTempDir } from './harness/temp-dir.ts';
import { waitFor } from './harness/wait-for.ts';

const skip = missingPrograms('sshd') ?? missingHiddenProc();

describeForms(skip, 'a host without /proc', form => {
  const directory = makeTempDir('host-without-proc');
  let stack: Stack;
  let client: Client;
  let sshd: TestSshd;

  beforeAll(async () => {
    const { path, shell } = hideProc(directory.path);
    const login = join(directory.path, 'login');
    const lines = [
      '#!/bin/sh',
      `export PATH=${path} SHELL=${shell}`,
      `exec ${shell} -c "$SSH_ORIGINAL_COMMAND"`,
      '',
    ];
    writeFileSync(login, lines.join('\n'));
    chmodSync(login, 0o755);
    const options = { lines: [`ForceCommand ${login}`] };
    [stack, sshd] = await Promise.all([form.start(), startTestSshd(options)]);
    client = connectClient(stack);
  });
  afterAll(async () => {
    await stack?.stop();
    await sshd?.stop();
    directory.remove();
  });

  test('a cancelled command says that only its group could be seen', async () => {
    const sid = await openSession(client, sshd, { hostname: await addHost(client, sshd) });
    const mark = makeMark();
    const { id } = await launchAsync(client, sid, `sleep ${mark} & echo begun; wait`);
    await waitFor(async () => (await readOutput(client, id)).length > 0, { what: 'its output' });
    await client.delete(`/api/jobs/${id}`);
    expect(await waitForEnd(client, id)).toMatchObject({
      state: 'cancelled',
      error: { code: 'cancelled', detail: expect.stringContaining('process group') },
    });
    expect(findMarked(mark)).toEqual([]);
  });
});
