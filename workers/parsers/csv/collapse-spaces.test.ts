import { buffer } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { collapseSpaces } from './collapse-spaces.ts';

async function collapse(text: string, cut = 0): Promise<string> {
  const bytes = Buffer.from(text);
  const pieces = (async function* () {
    yield bytes.subarray(0, cut);
    yield bytes.subarray(cut);
  })();
  return (await buffer(collapseSpaces(pieces, { quote: '"', comment: '#' }))).toString();
}

describe('runs of spaces', () => {
  const cases: [string, string, string][] = [
    ['between values', '  1   2 \n3 4', '1 2\n3 4'],
    ['in quotes', '1 "a   b"  2\n', '1 "a   b" 2\n'],
    ['beside doubled quotes', '1 "say ""a   b""  now"  2\n', '1 "say ""a   b""  now" 2\n'],
    ['with line breaks in quotes', '"a""\n  b"   2\n', '"a""\n  b" 2\n'],
    [
      'after a quote in a comment',
      '1 2\n  # see "x   y\n"a   b"   4\n',
      '1 2\n# see "x   y\n"a   b" 4\n',
    ],
    ['after quotes that are no first byte', 'a""   b\n', 'a"" b\n'],
    ['after an empty value in quotes', '""   "a  b"\n', '"" "a  b"\n'],
  ];
  test.each(cases)('%s', async (_, text, collapsed) => {
    for (let cut = 0; cut <= text.length; cut++) expect(await collapse(text, cut)).toBe(collapsed);
  });
});
