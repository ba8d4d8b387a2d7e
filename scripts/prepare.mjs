import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { buildSources, isBuilt } from './build.mjs';
import { hasPackages, installPackages } from './packages.mjs';
import { hash } from './stamps.mjs';

/**
 * Installs and builds what is missing or outdated. Returns what stands in the way, as one line, or
 * undefined. A checkout that is complete is only read, so it may belong to someone else or be
 * read-only; `development` asks for the development packages even when nothing has to be built.
 */
export async function prepareCheckout({ root, development, say }) {
  const checkout = {
    root,
    development,
    say,
    packages: hash([join(root, 'package-lock.json')], root),
  };
  if (isReady(checkout)) return undefined;
  const folder = join(root, '.cache');
  const { takeLock } = await import('./lock.mjs');
  let release;
  try {
    mkdirSync(folder, { recursive: true });
    release = await takeLock(join(folder, 'prepare.lock'), () =>
      say('Waiting for another start that is installing or building …'),
    );
  } catch (error) {
    if (error.syscall === undefined) throw error;
    return `Windlass is not built from its present sources, and ${root} cannot be written (${error.code}): run "node scripts/run.mjs" there once as its owner.`;
  }
  try {
    // Another process may have done it all while this one waited.
    if (isReady(checkout)) return undefined;
    return (await installPackages(checkout)) ?? (await buildSources(checkout));
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
