import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/**
 * Loads a large CommonJS package that is not bundled. `import` would first search all its files for exported names: 0.11 s
 * of processor time for DuckDB.
 */
export function requirePackage<Package>(name: string): Package {
  return require(name) as Package;
}
