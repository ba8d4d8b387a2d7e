import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { buildSources, isBuilt } from './build.mjs';
import { hasPackages, installOwnPackages } from './install-own-packages.mjs';
import { hashFiles } from './stamp-files.mjs';

/**
 * Installs and builds what is missing or outdated. Only reads a complete checkout, which may be read-only. `development`
 * requires the development packages even if nothing has to be built. Returns a problem in one line, or undefined.
 */
export async function prepareCheckout({ root, development, say }) {
  const checkout = {
    root,
    development,
    say,
    packages: hashFiles([join(root, 'package-lock.json')], root),
  };
  if (isReady(checkout)) return undefined;
  const folder = join(root, '.cache');
  const { acquireLock } = await import('./process-lock.mjs');
  let release;
  try {
    mkdirSync(folder, { recursive: true });
    release = await acquireLock(join(folder, 'prepare.lock'), () =>
      say('Waiting for another start that is installing or building …'),
    );
  } catch (error) {
    if (error.syscall === undefined) throw error;
    return `Windlass is not built from its present sources, and ${root} cannot be written (${error.code}): run "node scripts/run.mjs" there once as its owner.`;
  }
  try {
    // Another process may have done everything while this one waited.
    if (isReady(checkout)) return undefined;
    return (await installOwnPackages(checkout)) ?? (await buildSources(checkout));
  } catch (error) {
    if (error.syscall === undefined) throw error;
    return `Windlass cannot be made ready in ${root}: ${error.message}`;
  } finally {
    release();
  }
}

function isReady(checkout) {
  return isBuilt(checkout) && hasPackages(checkout);
}
