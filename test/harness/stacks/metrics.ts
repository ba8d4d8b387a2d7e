import type { Client } from '../../../servers/api-client.ts';

export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

/** The text format of Prometheus, as far as prom-client writes it. */
function parseMetrics(text: string): Sample[] {
  return text
    .split('\n')
    .filter(line => line && !line.startsWith('#'))
    .map(line => {
      const [, name = '', labels = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
      const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(
        ([, key = '', given = '']) => [key, given] as const,
      );
      return { name, labels: Object.fromEntries(pairs), value: Number(value) };
    });
}

/** What the service tells Prometheus. */
export const readMetrics = async (client: Client) =>
  parseMetrics(await (await client.fetch('/metrics')).text());

/** The sum of the samples of this name that have these labels. */
export function sum(samples: Sample[], name: string, labels: Record<string, string> = {}): number {
  return samples
    .filter(sample => sample.name === name)
    .filter(sample => Object.entries(labels).every(([key, value]) => sample.labels[key] === value))
    .reduce((total, { value }) => total + value, 0);
}
