import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { sweepAccounts } from './clients/accounts.ts';
import { nameClusterTemplate } from './databases/cluster-template.ts';
import { awaitTestProcesses, sweepTempDirs } from './files/temp-dir.ts';

/** Builds what the tests start as processes of their own, and clears away what killed runs left. */
export default async function setUp(): Promise<() => Promise<void>> {
  const script = fileURLToPath(new URL('../../scripts/run.mjs', import.meta.url));
  const built = spawnSync(process.execPath, [script], { stdio: 'inherit' });
  if (built.status !== 0) throw new Error('The build failed; what it said is above.');
  await sweepAccounts();
  sweepTempDirs();
  const cluster = nameClusterTemplate();
  return async () => {
    cluster.remove();
    // The stacks that files share end with the worker processes of vitest.
    await awaitTestProcesses().catch((error: Error) => console.error(error.message));
    sweepTempDirs();
  };
}
