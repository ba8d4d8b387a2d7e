import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

interface ShippedPackage {
  name: string;
  /** What the package says; undefined: it says nothing. */
  licence: string | undefined;
}

/** They let a program that uses them be passed on under any licence, with their notices. */
const PERMISSIVE = new Set([
  'MIT',
  'ISC',
  '0BSD',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'Unlicense',
]);

/** Others, and why they may be shipped. */
const EXCEPTIONS: [RegExp, string][] = [
  [
    /^h5wasm$/,
    'NIST: a public service, to be passed on with its notice; HDF5 in it is BSD-3-Clause',
  ],
  [/^@img\/sharp-/, 'libvips (LGPL) is a shared library of its own, which users can replace'],
  [/^@ffmpeg-installer\//, 'ffmpeg (LGPL, GPL) is a program of its own; the image has none of it'],
];

/** The production packages of the lockfile, for every platform. */
export function listShipped(root: string): ShippedPackage[] {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean; license?: string }>;
  };
  return Object.entries(packages)
    .filter(([path, { dev }]) => path !== '' && !dev)
    .map(([path, { license }]) => ({
      name: path.replace(/^.*node_modules\//, ''),
      licence: license ?? readOldForm(join(root, path, 'package.json')),
    }));
}

/** Packages of before 2014 have a list of objects, which the lockfile leaves out. */
function readOldForm(path: string): string | undefined {
  if (!existsSync(path)) return undefined;
  const { licenses = [] } = JSON.parse(readFileSync(path, 'utf8')) as {
    licenses?: { type?: string }[];
  };
  return licenses.length > 0 ? licenses.map(({ type }) => type).join(' AND ') : undefined;
}

export function findUnallowed(packages: ShippedPackage[]): ShippedPackage[] {
  return packages.filter(
    ({ name, licence = '' }) =>
      !licence.split(' AND ').every(part => PERMISSIVE.has(part)) &&
      !EXCEPTIONS.some(([pattern]) => pattern.test(name)),
  );
}
