import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { guide } from '../test/harness/files/guide.ts';

const root = join(import.meta.dirname, '..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const list = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map(
    name => `${folder}/${name}`,
  );

const FOREIGN = ['node_modules', 'dist', 'data', '.git', '.cache'];
const folders = readdirSync(root, { withFileTypes: true })
  .filter(entry => entry.isDirectory() && !FOREIGN.includes(entry.name))
  .map(entry => entry.name);
const files = [...readdirSync(root), ...folders.flatMap(list)];
const names = new Set(files.map(file => basename(file)));
const pages = files
  .filter(file => /^(docs\/.*|(clients\/\w+\/)?README|CONTRIBUTING|SECURITY)\.md$/.test(file))
  .sort();
/** All pages, also the one that names what once was. */
const allPages = [...pages, 'CHANGELOG.md'];
const decisions = readdirSync(join(root, 'docs/decisions'))
  .filter(name => /^\d/.test(name))
  .sort();
const readNumber = (name: string) => Number(name.slice(0, 3));

/** The kind of job that design.md adds as an example. */
const EXAMPLE = 'free-space';

/** What a page prints as code within a line. */
const readCode = (page: string) =>
  [...read(page).matchAll(/`([^`\n]+)`/g)].map(match => match[1] ?? '');

/** Its lines that are a comment and nothing else. */
const readComments = (file: string) => read(file).match(/^ *(\/\/|\/?\*).*$/gm) ?? [];

describe.each(pages)('%s', page => {
  test('names only files that exist', () => {
    for (const code of readCode(page)) {
      const [folder = ''] = code.split('/');
      if (code.includes(EXAMPLE)) continue;
      if (/^[\w./-]+$/.test(code) && code.includes('/') && folders.includes(folder))
        expect(existsSync(join(root, code)), code).toBe(true);
      else if (/^[\w-]+\.(ts|mjs|sh)$/.test(code)) expect(names, code).toContain(code);
    }
  });

  test('refers only to decisions that exist', () => {
    for (const [, number = ''] of read(page).matchAll(/\bdecision\s+(\d+)/g))
      expect(decisions.map(readNumber), page).toContain(Number(number));
  });
});

test.each(allPages)('%s links and shows only what is there', page => {
  const targets = [...read(page).matchAll(/\]\(([^)#\s]+)[^)]*\)|src="([^"]+)"/g)]
    .map(match => match[1] ?? match[2] ?? '')
    .filter(target => !/^[a-z]+:/.test(target));
  for (const target of targets)
    expect(existsSync(join(root, dirname(page), target)), target).toBe(true);
});

test('comments name only files that exist', () => {
  const sources = files.filter(
    file => /\.(ts|tsx|mjs)$/.test(file) && !file.includes('node_modules'),
  );
  const unknown = sources.flatMap(file =>
    readComments(file).flatMap(comment =>
      [...comment.matchAll(/(?<![\w./*)…-])[\w-]+\.(ts|tsx|mjs|sh|md)\b/g)]
        .filter(([name]) => !names.has(name))
        .map(([name]) => `${file}: ${name}`),
    ),
  );
  expect(unknown).toEqual([]);
});

/** The anchor that GitHub makes of a heading. */
const readAnchor = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^\w\s-]/g, '')
    .replaceAll(' ', '-');

describe('the page of attackers', () => {
  const page = read('docs/security.md');
  const cells = [...page.matchAll(/^\| \[.+\](\(#.+?\)) \| (.+?) \| (.+) \|$/gm)];
  const [people = ''] = page.split('\n## Each of them\n')[1]?.split('\n## ') ?? [];
  const sections = people
    .split('\n### ')
    .slice(1)
    .map(section => ({ title: section.split('\n')[0] ?? '', section }));

  function expectTest(claim: string) {
    expect(claim).toMatch(/`[\w/.-]+\.test\.ts`|\bno test\b/i);
    for (const [, path = ''] of claim.matchAll(/`([\w/.-]+\.test\.ts)`/g))
      expect(existsSync(join(root, path)), path).toBe(true);
  }

  test('has a row for each person, and a section that the row leads to', () => {
    expect(page.match(/^\| .*/gm)).toHaveLength(cells.length + 2);
    expect(sections.map(({ title }) => `(#${readAnchor(title)})`)).toEqual(
      cells.map(([, link]) => link),
    );
  });

  test('names a test in each cell, or says that there is none', () => {
    for (const cell of cells.flatMap(([, , gets = '', stops = '']) => [gets, stops]))
      expectTest(cell);
  });

  test.each(sections)('names a test in each line of: $title', ({ section }) => {
    const [, gets = '', stops = ''] = section.split(/^\*\*(?:Can get|What stops them)\*\*$/m);
    for (const list of [gets, stops]) {
      const claims = list.split(/^- /m).slice(1);
      expect(claims.length).toBeGreaterThan(0);
      for (const claim of claims) expectTest(claim);
    }
  });
});

test('pages name only scripts that package.json has', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  const named = allPages.flatMap(page => [
    ...[...read(page).matchAll(/\bnpm run ([\w:]+)/g)].map(match => match[1] ?? ''),
    ...[...read(page).matchAll(/\bnpm (start|test)\b/g)].map(match => match[1] ?? ''),
  ]);
  expect(new Set(named)).toContain('demo');
  for (const name of new Set(named)) expect(scripts, name).toHaveProperty([name]);
});

test.each<[file: string, limit: RegExp, words: (limit: string) => string]>([
  ['api/routes/rows.ts', /MAX_PAGE_ROWS = ([\d_]+)/, most => `at most ${most}, and`],
  ['api/routes/rows.ts', /MAX_CELLS = ([\d_]+)/, most => `the columns at most ${most};`],
  ['api/tables/table-query.ts', /MAX_SORT = (\d+)/, most => `at most ${most} columns |`],
  ['api/tables/table-query.ts', /MAX_FILTER = (\d+)/, most => `repeatable up to ${most} times`],
  ['api/uploads/compare-parts.ts', /MAX_LISTED = ([\d_]+)/, most => `lists ${most} at most`],
  ['shared/jobs/payloads/video.ts', /width: .*max\((\d+)\)/, most => `2 to ${most} pixels`],
])('the guide has the limit that %s keeps: %s', (file, limit, words) => {
  const [, number = ''] = limit.exec(read(file)) ?? [];
  expect(guide).toContain(words(number.replaceAll('_', ',')));
});

test('every script first installs what is missing, but for one that needs no package', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  for (const [name, command] of Object.entries(scripts))
    if (name !== 'sbom') expect(command, name).toMatch(/^(exec )?node scripts\/run\.mjs\b/);
});

test('README and clients have the version of the product, Python as PEP 440 writes it', () => {
  const readVersion = (path: string): string => JSON.parse(read(path)).version;
  const version = readVersion('package.json');
  expect(readVersion('package-lock.json')).toBe(version);
  expect(readVersion('clients/typescript/package.json')).toBe(version);
  const python = `__version__ = "${version.replace('-dev', '.dev0')}"\n`;
  expect(read('clients/python/src/windlass/_version.py')).toBe(python);
  expect(read('README.md')).toContain(`This is ${version}`);
});

test('decisions are numbered without a gap', () => {
  expect(decisions.map(readNumber)).toEqual(decisions.map((_name, n) => n + 1));
});

test('the list of decisions has each once, by its title', () => {
  const links = [...read('docs/decisions/README.md').matchAll(/^- \[(.+)\]\((.+)\)$/gm)];
  const listed = links.map(([, title = '', name = '']) => ({ title, name }));
  const all = decisions.map(name => ({
    title: read(`docs/decisions/${name}`).split('\n')[0]?.replace('# ', ''),
    name,
  }));
  expect(listed.sort((a, b) => a.name.localeCompare(b.name))).toEqual(all);
});

test.each(decisions)('decision %s has its number, context, decision and consequences', name => {
  const text = read(`docs/decisions/${name}`);
  expect(text).toMatch(new RegExp(`^# ${readNumber(name)}\\. `));
  const headings = [...text.matchAll(/^## (.+)$/gm)].map(match => match[1]);
  expect(headings).toEqual(['Context', 'Decision', 'Consequences']);
});

test('the glossary has at most 40 terms, sorted, each once and with the one file where it lives', () => {
  const rows = [...read('docs/glossary.md').matchAll(/^\| \*\*(.+?)\*\* \| .+ \| (.+) \|$/gm)].map(
    ([, term = '', where = '']) => ({ term, where }),
  );
  expect(rows.length).toBeGreaterThan(0);
  expect(rows.length).toBeLessThanOrEqual(40);
  const terms = rows.map(row => row.term);
  expect(terms).toEqual([...new Set(terms)].sort());
  for (const { term, where } of rows) expect(where, term).toMatch(/^`[\w-]+(\/[\w.-]+)+`$/);
});
