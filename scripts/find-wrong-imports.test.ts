import { expect, test } from 'vitest';
import { findWrongImports } from './find-wrong-imports.ts';

/** Which of these targets a file must not import. */
const wrongOf = (path: string, ...targets: string[]) =>
  findWrongImports(
    new Map([[path, targets.map(target => `import { any } from '${target}';\n`).join('')]]),
  ).map(found => found.slice(`${path}: `.length));

test('programs import shared, and neither each other nor what starts them', () => {
  expect(wrongOf('api/a/b.ts', '../c.ts', '../../shared/d.ts', '../../workers/e.ts')).toEqual([
    'workers/e.ts',
  ]);
  for (const [path, target] of [
    ['api/a.ts', '../cli/b.ts'],
    ['api/a.ts', '../servers/b.ts'],
    ['workers/a.ts', '../api/b.ts'],
    ['workers/a.ts', '../console/src/b.ts'],
    ['shared/a.ts', '../api/b.ts'],
    ['shared/a/b.ts', '../../test/harness/c.ts'],
    ['servers/a.ts', '../api/b.ts'],
    ['scripts/a.ts', '../servers/b.ts'],
    ['cli/a/b.ts', '../../test/harness/c.ts'],
    ['console/src/a.ts', '../../shared/b.ts'],
    ['clients/typescript/src/a.ts', '../../../shared/b.ts'],
  ] as const)
    expect([path, wrongOf(path, target).length]).toEqual([path, 1]);
  expect(wrongOf('console/src/a.ts', '../../clients/typescript/src/b.ts')).toEqual([]);
  expect(wrongOf('cli/a.ts', '../api/b.ts', '../workers/c.ts')).toEqual([]);
});

test('some folders do not import those that build on them', () => {
  for (const [path, target] of [
    ['api/http/a.ts', '../middleware/b.ts'],
    ['api/identity/oidc/a.ts', '../../middleware/b.ts'],
    ['workers/ssh/a.ts', '../runs/b.ts'],
    ['workers/host-agent/protocol/a.ts', '../b.ts'],
    ['workers/parsers/table/a.ts', '../formats/b.ts'],
    ['shared/process/a.ts', '../jobs/b.ts'],
    ['console/src/service/a.ts', '../ui/b.ts'],
    ['cli/backup/a.ts', '../client/b.ts'],
  ] as const)
    expect([path, wrongOf(path, target).length]).toEqual([path, 1]);
  expect(wrongOf('workers/host-agent/protocol/a.ts', './b.ts')).toEqual([]);
  expect(wrongOf('api/middleware/a.ts', '../http/b.ts')).toEqual([]);
  expect(wrongOf('cli/completion/a.ts', '../client/b.ts')).toEqual([]);
});

test('tests import the harness as well, and no other program', () => {
  const path = 'api/http/a.test.ts';
  expect(wrongOf(path, '../../test/harness/b.ts', '../middleware/c.ts', '../../cli/d.ts')).toEqual([
    'cli/d.ts',
  ]);
});

test('imports of each form are seen', () => {
  const text = [
    "import '../workers/a.ts';",
    "import {\n  type Any,\n} from '../workers/b.ts';",
    "export * from '../workers/c.ts';",
    "const any = await import('../workers/d.ts');",
    "type Any = import('../workers/e.ts').Any;",
  ].join('\n');
  expect(findWrongImports(new Map([['api/a.ts', text]])).map(found => found.at(-4))).toEqual([
    ...'abcde',
  ]);
});
