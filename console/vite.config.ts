import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** Makes few files of what the page loads at once: each costs a request on a slow link. */
export default defineConfig({
  root: at('.'),
  // Relative: the API says in the page below which path it is (api/console/console-files.ts).
  base: './',
  resolve: {
    alias: { '@windlass/client': at('../clients/typescript/src/index.ts') },
  },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: at('../dist/console'),
    emptyOutDir: true,
    target: 'es2022',
    // Data URLs would need an exception from the Content-Security-Policy.
    assetsInlineLimit: 0,
    // Notices that the licences of what is bundled ask for.
    license: { fileName: 'licences.md' },
    modulePreload: { polyfill: false },
    // Otherwise what later pages share is split off what is loaded at once, into many small files.
    rolldownOptions: {
      output: { codeSplitting: { groups: [{ name: 'first', tags: ['$initial'] }] } },
    },
  },
});
