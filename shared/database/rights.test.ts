import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const API = fileURLToPath(new URL('../../api', import.meta.url));

/** Statements that ask for every column, which the API's role does not have of these tables. */
const WHOLE_ROWS = /\.select\(\)\s*\.from\((users|sessions)\)|: (users|sessions)[,\s]*\w*\s*\}\)/;
const RETURNED = /\.(insert|update|delete)\((users|sessions)\)(?:(?!;\n).)*?\.returning\(\)/s;

test('the API names the columns that it reads of users and sessions', () => {
  const sources = readdirSync(API, { recursive: true, encoding: 'utf8' }).filter(
    name => name.endsWith('.ts') && !name.endsWith('.test.ts'),
  );
  expect(sources.length).toBeGreaterThan(100);
  for (const name of sources) {
    const text = readFileSync(join(API, name), 'utf8');
    expect(WHOLE_ROWS.exec(text)?.[0], name).toBeUndefined();
    expect(RETURNED.exec(text)?.[0], name).toBeUndefined();
  }
});
