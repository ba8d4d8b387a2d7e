/**
 * `npm run pin:images`: writes the digests of the exactly tagged images in Dockerfile and docker-compose.yml behind
 * their tags. Run it after a tag has changed, where the registries can be reached.
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
