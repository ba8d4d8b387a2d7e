import { afterAll, expect, test } from 'vitest';
import { readSettings, stackRoles } from '../harness/databases/database.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { startProgram } from '../harness/run-program.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

/** No unshare and no setpriv are there. */
const empty = makeTempDir('no-programs');
afterAll(() => empty.remove());

describeStack(undefined, 'a worker that parses alone', form => {
  const { stack } = useStack(form);

  test('says once what it cannot confine its parsers by', async () => {
    const { worker } = await stackRoles(stack);
    const { child, ended } = startProgram({
      args: ['dist/workers/main.js', 'parse'],
      settings: { ...(await readSettings(stack)), DATABASE_URL: worker, PATH: empty.path },
      cwd: empty.path,
    });
    const missing = /permits no network namespace/g;
    let log = '';
    child.stderr?.on('data', piece => {
      log += piece;
    });
    await waitFor(() => log.match(missing), { what: 'its warning' });
    child.kill();
    const { stderr } = await ended;
    expect(stderr.match(missing)).toHaveLength(1);
    expect(stderr).not.toContain('there is no ffmpeg');
  });
});
