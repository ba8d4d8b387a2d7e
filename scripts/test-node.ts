/**
 * `npm run test:node24 [-- FILE …]`: tests on the Node that is recommended; all others run on the one that is installed, in
 * CI the oldest that is supported. Default: the interface suite on the embedded form, and the demonstration.
 */
import { spawnSync } from 'node:child_process';
import { delimiter, dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installNode } from './install-node.ts';

/** Names of tests: what a fleet does differently does not depend on Node. */
const CHOSEN = '^the interface, embedded as it is|shows all of it on the embedded form';

const node = installNode(24);
if (node === undefined) {
  console.log('Node 24: skipped, npm has none for this machine');
} else {
  const files = process.argv.slice(2);
  const args = files.length > 0 ? files : ['test/interface', 'test/operations/demo', '-t', CHOSEN];
  const { status } = spawnSync(node, ['scripts/run.mjs', 'dist/scripts/test.js', ...args], {
    cwd: fileURLToPath(new URL('../../', import.meta.url)),
    stdio: 'inherit',
    // What tests start by name, such as npm, runs on it too.
    env: { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH ?? ''}` },
  });
  process.exitCode = status ?? 1;
}
