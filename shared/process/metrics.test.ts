import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ERRORS } from '../errors/errors.ts';
import { API_METRICS, createMetrics, WORKER_METRICS } from './metrics.ts';

const page = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8');

test('docs/operations.md lists every metric', () => {
  const describe = (table: typeof API_METRICS | typeof WORKER_METRICS, extra: string[]) =>
    Object.entries(table).map(([name, { type, labels, help }]) => {
      const all = [...labels, ...extra].map(label => `\`${label}\``).join(', ');
      return `| \`${name}\` | ${type} | ${all} | ${help} |`;
    });
  const expected = [...describe(API_METRICS, []), ...describe(WORKER_METRICS, ['worker'])];
  expect(page.split('\n').filter(line => line.startsWith('| `windlass_'))).toEqual(expected);
});

test('docs/alerts.yml asks for metrics and labels that there are', () => {
  const rules = readFileSync(new URL('../../docs/alerts.yml', import.meta.url), 'utf8');
  const tables: Record<string, { labels: readonly string[] }> = {
    ...API_METRICS,
    ...WORKER_METRICS,
  };
  const asked = [...rules.matchAll(/\b(windlass_\w+?)(?:_count)?\b(?:\{(\w+)=)?/g)];
  expect(asked.length).toBeGreaterThan(5);
  for (const [, name = '', label] of asked) {
    expect(Object.keys(tables)).toContain(name);
    if (label) expect(tables[name]?.labels).toContain(label);
  }
});

test('docs/alerts.yml gives each rule a severity, and calls no host or limit a fault of the service', () => {
  const rules = readFileSync(new URL('../../docs/alerts.yml', import.meta.url), 'utf8')
    .split(/^ +- alert: /m)
    .slice(1);
  for (const rule of rules) expect(rule).toMatch(/labels: \{ severity: (critical|warning) \}/);
  const [faults = ''] = rules.filter(rule => rule.startsWith('WindlassServerErrors'));
  const codes = /code=~"([\w|]+)"/.exec(faults)?.[1]?.split('|') ?? [];
  expect(codes).toEqual(['internal', 'unavailable', 'worker_lost']);
  for (const code of codes) expect(Object.keys(ERRORS)).toContain(code);
});

test('makes working metrics from a table', async () => {
  const { registry, metrics } = createMetrics(WORKER_METRICS);
  metrics.windlass_job_wait_seconds.observe({ kind: 'command' }, 3);
  metrics.windlass_leases_expired_total.inc(2);
  const text = await registry.metrics();
  expect(text).toContain('windlass_job_wait_seconds_bucket{le="5",kind="command"} 1');
  expect(text).toContain('windlass_job_wait_seconds_bucket{le="2.5",kind="command"} 0');
  expect(text).toContain('windlass_leases_expired_total 2');
});
