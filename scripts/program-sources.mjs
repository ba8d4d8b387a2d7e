import { join, relative } from 'node:path';
import { listFiles } from './list-files.mjs';

/** The folders that dist/ is made of. Files of the kinds in ASSET are copied. */
const SOURCES = [
  'api',
  'workers',
  'shared',
  'cli',
  'clients/typescript/src',
  'servers',
  'demo',
  'scripts',
  'bench',
];
const ASSET = /\.(sh|html|css)$/;
const MODULE = /(?<!\.test|\.d)\.ts$/;

/** The paths, from `root`, of the modules of all programs and of the files that they read at their own place. */
export function listProgramSources(root) {
  const paths = SOURCES.flatMap(name => listFiles(join(root, name))).map(path =>
    relative(root, path),
  );
  return {
    modules: paths.filter(path => MODULE.test(path)),
    assets: paths.filter(path => ASSET.test(path)),
  };
}
