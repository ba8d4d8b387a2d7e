import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findMarked, makeMark } from '../faults/stubborn-processes.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { hideProc, missingHiddenProc } from '../harness/hosts/hidden-proc.ts';
import { launchAsync, openSession, readOutput, waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const skip = missingPrograms('sshd') ?? missingHiddenProc();

describeStack(skip, 'a host without /proc', form => {
  const directory = makeTempDir('host-without-proc');
  afterAll(() => directory.remove());
  const login = join(directory.path, 'login');
  const { client, sshd } = useRemoteStack(form, { sshdLines: [`ForceCommand ${login}`] });

  beforeAll(() => {
    const { path, shell } = hideProc(directory.path);
    const lines = [
      '#!/bin/sh',
      `export PATH=${path} SHELL=${shell}`,
      `exec ${shell} -c "$SSH_ORIGINAL_COMMAND"`,
      '',
    ];
    writeFileSync(login, lines.join('\n'));
    chmodSync(login, 0o755);
  });

  test('a cancelled command says that only its group could be seen', async () => {
    const sid = await openSession(client, sshd);
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
