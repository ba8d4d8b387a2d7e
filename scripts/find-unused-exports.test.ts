import { expect, test } from 'vitest';
import { findUnusedExports } from './find-unused-exports.ts';

test('finds the values that no other file imports, however they are imported', () => {
  const texts = new Map([
    ['a/one.ts', 'export const used = 1;\n\nexport function unused() {}\nexport type T = 1;\n'],
    ['a/two.ts', "import { type T, used as one } from './one.ts';\nexport class Lost {}\n"],
    ['whole.ts', 'export const any = 1;\n'],
    ['a/names.ts', "import * as whole from '../whole.ts';\n"],
    ['late.ts', 'export const any = 1;\n'],
    ['a/later.ts', "export {\n  any,\n  other,\n} from '../late.ts';\n"],
    ['lazy.ts', 'export const any = 1;\n'],
    ['lazily.ts', "const { any } = await import('./lazy.ts');\n"],
    ['some.test.ts', '`\nexport const any = 1;\n`'],
  ]);
  expect(findUnusedExports(texts)).toEqual(['a/one.ts:3 unused', 'a/two.ts:2 Lost']);
});
