/** For `npm run check`: names what is exported for nobody, and fails if there is any. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findUnusedExports } from './find-unused-exports.ts';

// This file runs from dist/scripts.
const root = fileURLToPath(new URL('../../', import.meta.url));
/** What the programs of others import. */
const PUBLISHED = 'clients/typescript/src/index.ts';

const texts = listSources('.').map(path => [path, readFileSync(join(root, path), 'utf8')] as const);
const unused = findUnusedExports(new Map(texts)).filter(
  found => !found.startsWith(`${PUBLISHED}:`),
);
for (const found of unused) console.log(`${found} is exported, and no other file imports it`);
process.exitCode = unused.length > 0 ? 1 : 0;

function listSources(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap(entry => {
    const path = join(folder, entry.name);
    if (entry.isDirectory())
      return /^(\.|node_modules$|dist$|data$)/.test(entry.name) ? [] : listSources(path);
    return /\.(ts|tsx|mjs)$/.test(entry.name) ? [path] : [];
  });
}
