/**
 * Prepares a checkout, then runs a compiled program or one of a package, if one is named, in this process:
 *
 *   node scripts/run.mjs dist/cli/main.js up
 *
 * Compares contents with those of the last install and build, not times, so that a copied tree works as well. In
 * JavaScript that old versions of Node can parse: it runs before anything is installed.
 */
import { dirname, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const OLDEST = [20, 19];
const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');

async function main() {
  const version = process.versions.node.split('.').map(Number);
  if (version[0] < OLDEST[0] || (version[0] === OLDEST[0] && version[1] < OLDEST[1])) {
    fail(`Windlass needs Node.js ${OLDEST.join('.')} or newer; this is ${process.versions.node}.`);
    return;
  }
  const name = process.argv[2];
  const program = name === undefined ? undefined : resolve(root, name);
  const { prepareCheckout } = await import('./prepare-checkout.mjs');
  // Programs in dist/scripts (check, test, dev) and dist/bench need the development packages, or are in one of them.
  const development =
    program === undefined ||
    ['dist/scripts', 'dist/bench', 'node_modules'].some(folder =>
      program.startsWith(resolve(root, folder)),
    );
  const problem = await prepareCheckout({ root, development, say: line => console.error(line) });
  if (problem !== undefined) {
    fail(problem);
    return;
  }
  if (program === undefined) return;
  process.argv = [process.argv[0], program].concat(process.argv.slice(3));
  await import(pathToFileURL(program).href);
}

function fail(line) {
  console.error(line);
  process.exitCode = 1;
}

main().catch(error => {
  console.error(error);
  process.exit(1);
});
