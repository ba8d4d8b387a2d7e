/** For `npm run check`: names what is exported for nobody or imported against the rules, and fails if there is any. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findUnusedExports } from './find-unused-exports.ts';
import { findWrongImports } from './find-wrong-imports.ts';

// This file runs from dist/scripts.
const root = fileURLToPath(new URL('../../', import.meta.url));
/** What the programs of others import. */
const PUBLISHED = 'clients/typescript/src/index.ts';

const texts = new Map(listSources('.').map(path => [path, readFileSync(join(root, path), 'utf8')]));
const problems = [
  ...findUnusedExports(texts)
    .filter(found => !found.startsWith(`${PUBLISHED}:`))
    .map(found => `${found} is exported, and no other file imports it`),
  ...findWrongImports(texts).map(
    found => `${found} must not be imported there: see scripts/find-wrong-imports.ts`,
  ),
];
for (const problem of problems) console.log(problem);
process.exitCode = problems.length > 0 ? 1 : 0;

function listSources(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap(entry => {
    const path = join(folder, entry.name);
    if (entry.isDirectory())
      return /^(\.|node_modules$|dist$|data$)/.test(entry.name) ? [] : listSources(path);
    return /\.(ts|tsx|mjs)$/.test(entry.name) ? [path] : [];
  });
}
