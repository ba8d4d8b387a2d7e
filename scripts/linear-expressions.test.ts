import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { parseAst } from 'rolldown/parseAst';
import { analyse } from 'scslre';
import { expect, test } from 'vitest';
import { packageRoot } from '../shared/process/package-root.ts';

/** Expressions that the checker suspects, and that take linear time or read what no client sends. */
const ALLOWED: Record<string, string> = {
  'api/http/request-link.ts': 'matches every text, so that it goes back nowhere',
  'cli/embedded-postgres/translate-errors.ts': 'reads what the own PostgreSQL prints',
  'cli/service/read-dot-env.ts': 'reads .env, as the parser of Node does',
  'shared/database/host-urls.ts': 'reads settings',
};

/** Finds what takes more than linear time for a text that repeats one character; not what needs several. */
test('no regular expression takes quadratic time for a text that a client may send', () => {
  const files = execFileSync('git', ['ls-files', 'api', 'shared', 'workers', 'cli'], {
    cwd: packageRoot,
    encoding: 'utf8',
  })
    .split('\n')
    .filter(file => /(?<!\.test)\.ts$/.test(file));
  const found = files.map(file => ({ file, expressions: expressionsOf(file) }));
  expect(found.flatMap(({ expressions }) => expressions).length).toBeGreaterThan(300);
  const suspects = found.flatMap(({ file, expressions }) =>
    expressions.filter(isSuspect).map(expression => ({ file, expression: String(expression) })),
  );
  expect(suspects.filter(({ file }) => !(file in ALLOWED))).toEqual([]);
  expect([...new Set(suspects.map(({ file }) => file))]).toEqual(Object.keys(ALLOWED));
});

test('the checker finds one', () => {
  expect([/^\s*#SBATCH/m, /^(\d+\.?\d*)$/, /(a*)*b/].map(isSuspect)).toEqual([true, true, true]);
  expect([/^[ \t]*#SBATCH/m, /^(\d+(\.\d*)?)$/].map(isSuspect)).toEqual([false, false]);
});

const isSuspect = (expression: RegExp) => analyse(expression).reports.length > 0;

/** Those that its source spells out. */
function expressionsOf(file: string): RegExp[] {
  const found: RegExp[] = [];
  const text = readFileSync(new URL(file, packageRoot), 'utf8');
  // Every expression is a node with its parsed value, whatever node holds it.
  JSON.stringify(parseAst(text, { lang: 'ts' }), (_name, node: unknown) => {
    const { regex } = (node ?? {}) as { regex?: { pattern: string; flags: string } };
    if (regex) found.push(new RegExp(regex.pattern, regex.flags));
    return typeof node === 'bigint' ? String(node) : node;
  });
  return found;
}
