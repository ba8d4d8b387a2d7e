import { spawnSync } from 'node:child_process';
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { makeTempDir } from '../test/harness/files/temp-dir.ts';

const root = join(import.meta.dirname, '..');
const copy = makeTempDir('design-example');
afterAll(() => copy.remove());

test('the kind of job that design.md adds as an example has no type error', () => {
  for (const name of ['api', 'shared', 'workers'])
    cpSync(join(root, name), join(copy.path, name), {
      recursive: true,
      filter: path => !path.endsWith('.test.ts'),
    });
  for (const name of ['node_modules', 'package.json'])
    symlinkSync(join(root, name), join(copy.path, name));
  writeFileSync(
    join(copy.path, 'tsconfig.json'),
    JSON.stringify({ extends: join(root, 'tsconfig.json'), include: ['api', 'shared', 'workers'] }),
  );

  const [entry = '', handler = '', route = ''] = readExample();
  const catalog = join(copy.path, 'shared/jobs/catalog.ts');
  const whole = readFileSync(catalog, 'utf8').replace('export const JOBS = {\n', `$&${entry}`);
  expect(whole).toContain(entry);
  writeFileSync(catalog, whole);
  writeFileSync(join(copy.path, 'workers/handlers/free-space.ts'), handler);
  writeFileSync(join(copy.path, 'api/routes/free-space.ts'), route);

  const compiler = join(root, 'node_modules/typescript/bin/tsc');
  const { stdout } = spawnSync(process.execPath, [compiler, '-p', copy.path, '--pretty', 'false'], {
    encoding: 'utf8',
  });
  expect(stdout).toBe('');
});

/** Its blocks of TypeScript, in their order. */
function readExample(): string[] {
  const [, section = ''] = readFileSync(join(root, 'docs/design.md'), 'utf8').split(
    '\n## Adding a kind of job\n',
  );
  return [...section.matchAll(/^ {3}```ts\n([\s\S]*?)^ {3}```$/gm)].map(([, block = '']) =>
    block.replace(/^ {3}/gm, ''),
  );
}
