import { dirname, join } from 'node:path';

/** Which other folders the files of these import; those of the rest import any. */
const IMPORTS: Record<string, string[]> = {
  api: ['shared'],
  workers: ['shared'],
  shared: [],
  clients: [],
  console: ['clients'],
  servers: ['shared', 'cli'],
  // The image is built by these, and has no tests and no servers of tests: see .dockerignore.
  scripts: ['shared', 'cli'],
  cli: ['shared', 'api', 'workers', 'clients'],
};
/** What tests beside the sources import as well. */
const OF_TESTS = ['test', 'servers', 'scripts', 'demo'];
/** Tests that import any: they hold clients against the service, and the scripts against the sources. */
const TESTS_OF_ANY = ['clients', 'scripts'];
/** The first does not import the second: that imports it, or is no part of the same program. */
const NEVER: [from: string, to: string][] = [
  ['api/http', 'api/middleware'],
  ['api/identity', 'api/middleware'],
  ['api/remote', 'api/middleware'],
  ['workers/ssh', 'workers/runs'],
  ['workers/host-agent/protocol', 'workers/host-agent'],
  ['workers/parsers/table', 'workers/parsers/formats'],
  ['shared/process', 'shared/database'],
  ['shared/process', 'shared/jobs'],
  ['shared/process', 'shared/storage'],
  ['shared/process', 'shared/service'],
  ['console/src/service', 'console/src/files'],
  ['console/src/service', 'console/src/ui'],
  // What serves an installation and what calls a service from anywhere both print by cli/output.
  ['cli/backup', 'cli/client'],
  ['cli/data-dir', 'cli/client'],
  ['cli/embedded-postgres', 'cli/client'],
  ['cli/output', 'cli/client'],
  ['cli/service', 'cli/client'],
  ['cli/supervisor', 'cli/client'],
];
const IMPORT = /(?:\bfrom|\bimport\(?)\s*'(\.[^']+)'/g;

/** `path: target` of each import that these rules forbid. Tests are held to the first of them alone. */
export function findWrongImports(texts: ReadonlyMap<string, string>): string[] {
  return [...texts].flatMap(([path, text]) =>
    [...text.matchAll(IMPORT)]
      .map(([, target = '']) => join(dirname(path), target))
      .filter(target => isWrong(path, target))
      .map(target => `${path}: ${target}`),
  );
}

function isWrong(path: string, target: string): boolean {
  const isTest = /\.test\.tsx?$/.test(path);
  const [from = '', to = ''] = [path, target].map(each => each.split('/')[0]);
  const others = IMPORTS[from];
  if (from !== to && others)
    return (
      !others.includes(to) && !(isTest && (TESTS_OF_ANY.includes(from) || OF_TESTS.includes(to)))
    );
  return !isTest && NEVER.some(([one, other]) => isIn(path, one) && isIn(target, other, one));
}

const isIn = (path: string, folder: string, except = '\0') =>
  path.startsWith(`${folder}/`) && !path.startsWith(`${except}/`);
