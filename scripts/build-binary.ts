/**
 * `npm run build:binary`: dist/windlass, the command for users in one file that needs no Node: a single executable
 * application (Node's term) for this platform.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { packageRoot } from '../shared/process/package-root.ts';
import { RELEASE } from '../shared/process/release.ts';
import { installNode } from './install-node.ts';

const at = (path: string) => fileURLToPath(new URL(path, packageRoot));

const RELEASE_MODULE = at('shared/process/release.ts');
const RELEASE_CODE = `export const RELEASE = ${JSON.stringify(RELEASE)};`;
const node = installNode(26);
if (node === undefined) {
  console.error(`There is no Node for ${process.platform} on ${process.arch} to build it with.`);
  process.exit(1);
}
const folder = mkdtempSync(at('dist/.binary-'));
try {
  const main = join(folder, 'main.mjs');
  const bundle = await rolldown({
    input: at('cli/client-main.ts'),
    platform: 'node',
    // There is no package.json beside the file.
    plugins: [{ name: 'release', load: id => (id === RELEASE_MODULE ? RELEASE_CODE : null) }],
  });
  await bundle.write({ file: main, format: 'esm', codeSplitting: false, minify: true });
  await bundle.close();
  const config = join(folder, 'sea-config.json');
  const output = join(folder, 'windlass');
  writeFileSync(
    config,
    JSON.stringify({ main, mainFormat: 'module', output, disableExperimentalSEAWarning: true }),
  );
  const { status } = spawnSync(node, ['--build-sea', config], { stdio: ['ignore', 2, 2] });
  if (status !== 0) process.exit(1);
  const binary = at('dist/windlass');
  renameSync(output, binary);
  console.log(`${binary}: ${Math.round(statSync(binary).size / 2 ** 20)} MiB`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
