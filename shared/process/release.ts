import { readFileSync } from 'node:fs';
import { packageRoot } from './package-root.ts';

const { version } = JSON.parse(readFileSync(new URL('package.json', packageRoot), 'utf8')) as {
  version: string;
};

/** The version of this program. */
export const RELEASE = version;
