import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ERRORS } from '../shared/errors/errors.ts';
import { SETTINGS } from '../shared/settings/settings.ts';
import { makeDocs } from './make-docs.ts';

const root = join(import.meta.dirname, '..');
const page = (path: string) => makeDocs().find(made => made.path === path)?.text ?? '';

test.each(makeDocs())('$path is what the code says now', ({ path, text }) => {
  const hint = 'run `npm run docs`';
  expect(readFileSync(join(root, path), 'utf8'), hint).toBe(text);
});

test('every error has one row with its status, a meaning and what to do', () => {
  const rows = page('docs/errors.md').split('\n');
  for (const [code, { status }] of Object.entries(ERRORS)) {
    const row = rows.filter(line => line.startsWith(`| \`${code}\` |`));
    expect(row, code).toHaveLength(1);
    const cells = row[0]?.split(' | ') ?? [];
    expect(cells).toHaveLength(6);
    expect(cells[1]).toBe(String(status));
    for (const cell of cells.slice(2, 5)) expect(cell).toMatch(/\S/);
  }
});

test('every setting has one row', () => {
  const rows = page('docs/settings.md').split('\n');
  for (const name of Object.keys(SETTINGS)) {
    expect(
      rows.filter(line => line.startsWith(`| \`${name}\` |`)),
      name,
    ).toHaveLength(1);
  }
});
