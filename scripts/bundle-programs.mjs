/**
 * Makes dist/ of the sources: a program that imports a thousand modules spends its start on finding and compiling them.
 * See docs/decisions/061-programs-are-bundled.md.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { rolldown } from 'rolldown';
import { viteImportGlobPlugin } from 'rolldown/experimental';
import { listFiles } from './list-files.mjs';
import { listProgramSources } from './program-sources.mjs';

const root = fileURLToPath(new URL('../', import.meta.url));
const dist = join(root, 'dist');

/** Modules that are started, or imported by a computed path: each has an output of its own name. */
const ENTRIES = [
  /^(api|workers|cli)\/(client-)?main\.ts$/,
  /^(demo|scripts|bench)\/[^/]+\.ts$/,
  /^scripts\/dev\/preloaded-up\.ts$/,
  /^bench\/(core\/worker|upload\/peer)\.ts$/,
  /-(thread|child)\.ts$/,
  /^workers\/parsers\/child\.ts$/,
  // Another user has to be able to read it.
  /^workers\/sandbox\/confine\.ts$/,
  // What tests import in programs of their own.
  /^cli\/backup\/(open-connection|hold-deletions)\.ts$/,
  /^cli\/data-dir\/(choose-data-dir|lock)\.ts$/,
  /^cli\/embedded-postgres\/postgres\.ts$/,
  /^cli\/supervisor\/(reaper|supervisor)\.ts$/,
  /^servers\/processes\.ts$/,
  /^workers\/sandbox\/run-confined\.ts$/,
  /^shared\/(database\/migrate|process\/(log|line-writer)|service\/lifecycle|secrets\/handed-secrets)\.ts$/,
  /^workers\/video\/encode-video\.ts$/,
];
/** Stands in a bundle for the URL of dist/, relative to it. */
const DIST_URL = '__dist_url__';

/** Packages with native parts, with files of their own, or that load files by computed names. */
const NOT_BUNDLED = [
  '@bull-board/api',
  '@bull-board/express',
  '@duckdb/node-api',
  '@ffmpeg-installer/ffmpeg',
  '@node-rs/argon2',
  'embedded-postgres',
  'fluent-ffmpeg',
  'h5wasm',
  'pino',
  'sharp',
  'ssh2',
];

/** Modules read the files beside them from there, in whichever bundle they are. */
const keepPlaces = {
  name: 'keep-places',
  transform: {
    filter: { id: /\.ts$/, code: 'import.meta.url' },
    handler: (code, id) => {
      const place = `${DIST_URL}/${relative(root, id).replace(/\.ts$/, '.js')}`;
      const url = `new URL('${place}', import.meta.url).href`;
      // The lines stay as they are, and so does the source map.
      return { code: code.replaceAll('import.meta.url', url), map: null };
    },
  },
};

/** The bundles of the last build in dist/chunks, which programs that run may yet load; a line for each. */
const CHUNKS = join(dist, '.chunks');

const { modules, assets } = listProgramSources(root);
try {
  const outputs = new Map(assets.map(path => [path, readFileSync(join(root, path))]));
  for (const { fileName, code, source } of await bundle()) {
    const toDist = relative(dirname(fileName), '') || '.';
    outputs.set(fileName, code?.replaceAll(DIST_URL, toDist) ?? source);
  }
  for (const [path, content] of outputs) writeIfChanged(join(dist, path), content);
  removeOrphans(outputs, listChunksBefore());
  const chunks = [...outputs.keys()].filter(path => path.startsWith('chunks/'));
  writeIfChanged(CHUNKS, `${chunks.sort().join('\n')}\n`);
} catch (error) {
  const { message } = error;
  console.error(process.stderr.isTTY ? message : stripVTControlCharacters(message));
  process.exitCode = 1;
}

async function bundle() {
  const { devDependencies = {} } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const external = [...NOT_BUNDLED, ...Object.keys(devDependencies)];
  const entries = modules.filter(path => ENTRIES.some(pattern => pattern.test(path)));
  const build = await rolldown({
    cwd: root,
    input: Object.fromEntries(entries.map(path => [path.replace(/\.ts$/, ''), join(root, path)])),
    platform: 'node',
    external: external.map(name => new RegExp(`^${name}($|/)`)),
    // As Node, but for packages whose CommonJS cannot be bundled (jsonc-parser), or has more modules.
    resolve: { mainFields: ['module', 'main'] },
    transform: { target: 'es2023' },
    plugins: [viteImportGlobPlugin({ root }), keepPlaces],
  });
  const { output } = await build.generate({
    dir: dist,
    format: 'esm',
    entryFileNames: '[name].js',
    // Named after what it has: a program that was started before a build does not load a bundle of that build.
    chunkFileNames: 'chunks/[name]-[hash].js',
    sourcemap: true,
    keepNames: true,
    sourcemapExcludeSources: true,
    minifyInternalExports: false,
    comments: { legal: true, annotation: false, jsdoc: false },
  });
  await build.close();
  return output;
}

/** Atomically: programs that run may yet load it. */
function writeIfChanged(path, content) {
  if (existsSync(path) && readFileSync(path).equals(Buffer.from(content))) return;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.new`, content);
  renameSync(`${path}.new`, path);
}

/** Of a dist that names none they are all that are there. */
function listChunksBefore() {
  if (existsSync(CHUNKS)) return new Set(readFileSync(CHUNKS, 'utf8').trim().split('\n'));
  return new Set(listFiles(join(dist, 'chunks')).map(path => path.slice(dist.length + 1)));
}

/**
 * Removes the outputs of deleted sources, but for `kept`. The console and `windlass` of build:binary are of other builds.
 */
function removeOrphans(outputs, kept) {
  for (const name of new Set([...outputs.keys()].map(path => path.split('/', 1)[0])))
    for (const path of listFiles(join(dist, name)))
      if (![outputs, kept].some(paths => paths.has(path.slice(dist.length + 1))))
        rmSync(path, { force: true });
}
