/**
 * `npm run pin:images`: asks the registries for the digests of the images that Dockerfile and docker-compose.yml name by an
 * exact tag, and writes them behind the tags. To be run where a registry can be reached, after a tag was changed.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pinImages } from './images/pin.ts';
import { askDigest } from './images/registry.ts';

// This file runs from dist/scripts.
const root = fileURLToPath(new URL('../../', import.meta.url));

for (const file of ['Dockerfile', 'docker-compose.yml']) {
  const path = join(root, file);
  writeFileSync(path, await pinImages(readFileSync(path, 'utf8'), askDigest));
  console.log(`${file}: pinned`);
}
