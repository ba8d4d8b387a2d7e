import { existsSync } from 'node:fs';

/** The folder of package.json and migrations/, from the sources and from dist/ alike. */
export const packageRoot: URL = findRoot(new URL('../', import.meta.url));

function findRoot(from: URL): URL {
  return existsSync(new URL('package.json', from)) ? from : findRoot(new URL('../', from));
}
