import { dirname, join } from 'node:path';

const EXPORTED = /^export (?:async )?(?:abstract )?(?:const|let|function\*?|class) (\w+)/gm;
/** As the formatter writes them. */
const IMPORTED = /^(?:import|export)\s(?:type\s)?(?:\w+,\s*)?\{([^}]*)\}\s*from\s'(\.[^']+)'/gm;
/** Every name of such a file may be used. */
const IMPORTED_WHOLE =
  /(?:\*\s(?:as\s\w+\s)?from|\bimport\(|\bimportActual(?:<[^>]*>)?\()\s*'(\.[^']+)'/g;

/**
 * The values, as `path:line name`, that a file exports and that no other file imports. Types are left out: those of
 * what is exported are told to its callers. `texts` are those of all files by path.
 */
export function findUnusedExports(texts: ReadonlyMap<string, string>): string[] {
  const used = new Set<string>();
  for (const [path, text] of texts) {
    const from = (target = '') => join(dirname(path), target);
    for (const [, names = '', target] of text.matchAll(IMPORTED))
      for (const name of names.split(',')) used.add(`${from(target)} ${importedName(name)}`);
    for (const [, target] of text.matchAll(IMPORTED_WHOLE)) used.add(from(target));
  }
  return [...texts].flatMap(([path, text]) =>
    // What a test seems to export stands in the text of a program that it writes.
    used.has(path) || path.endsWith('.test.ts')
      ? []
      : [...text.matchAll(EXPORTED)]
          .filter(([, name]) => !used.has(`${path} ${name}`))
          .map(
            ({ 1: name, index }) => `${path}:${text.slice(0, index).split('\n').length} ${name}`,
          ),
  );
}

/** That of `type Name as other` is Name. */
function importedName(specifier: string): string | undefined {
  return /^\s*(?:type\s)?(\w+)/.exec(specifier)?.[1];
}
