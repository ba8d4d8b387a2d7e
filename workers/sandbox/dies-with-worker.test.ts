import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'vitest';
import { endWithThisProcess } from '../../servers/processes.ts';
import { AMPLE } from '../../test/harness/files/video-limits.ts';
import { describeUnless } from '../../test/harness/skip.ts';
import { waitFor } from '../../test/harness/wait-for.ts';

const canDie = spawnSync('setpriv', ['--pdeathsig', 'KILL', '--', 'true']).status === 0;
const skip = canDie
  ? undefined
  : { reason: 'needs setpriv of util-linux, with --pdeathsig', obtainable: false };

/** Not the one of a program that was killed and is not yet taken up. */
function lives(pid: number): boolean {
  try {
    return !/^State:\s*Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

describeUnless(skip, 'a confined program', () => {
  test('ends with the worker that started it, however that ends', async () => {
    const program = new URL('../../dist/workers/sandbox/run-confined.js', import.meta.url);
    const code = `import { runConfined } from ${JSON.stringify(program.href)};
      const options = { ...${JSON.stringify(AMPLE)}, directory: '/', keepFree: 0, signal: new AbortController().signal };
      await runConfined(['sleep', '61.5'], options);`;
    const worker = spawn(process.execPath, ['--input-type=module', '-e', code]);
    endWithThisProcess(worker);
    const pid = await waitFor(
      () => {
        const found = spawnSync('pgrep', ['-P', String(worker.pid), '-x', 'sleep']);
        return Number(found.stdout.toString().trim()) || undefined;
      },
      { what: 'the program to run' },
    );
    worker.kill('SIGKILL');
    await waitFor(() => !lives(pid), { what: 'the program to end', timeoutMs: 10_000 });
  });
});
