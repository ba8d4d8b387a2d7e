import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/**
 * Loads a large CommonJS package. `import` would first search all its files for exported names: 0.12 s of processor
 * time for bullmq and ioredis, 0.11 s for DuckDB, 0.16 s for minio, where a program starts in 0.75 s.
 */
export function requirePackage<Package>(name: string): Package {
  return require(name) as Package;
}
