import { BACKING_SERVICES } from './backing-services.ts';
import { IDENTITY } from './identity.ts';
import { LIMITS } from './limits.ts';
import { SERVICE } from './service.ts';
import type { Setting } from './setting.ts';
import { WORK } from './work.ts';

/** Every setting with its default and meaning. */
export const SETTINGS = {
  ...SERVICE,
  ...BACKING_SERVICES,
  ...IDENTITY,
  ...WORK,
  ...LIMITS,
} as const satisfies Record<string, Setting>;

const TOPICS: [heading: string, settings: Record<string, Setting>][] = [
  ['The service', SERVICE],
  ['Database, queues, objects', BACKING_SERVICES],
  ['Logins and keys', IDENTITY],
  ['Workers, hosts and retention', WORK],
  ['Limits', LIMITS],
];

/** The settings as Markdown, for docs/settings.md. */
export function describeSettings(): string {
  return TOPICS.map(([heading, settings]) =>
    [
      `## ${heading}`,
      '',
      '| setting | default | meaning |',
      '| --- | --- | --- |',
      ...Object.entries(settings).map(
        ([name, { default: fallback, meaning }]) =>
          `| \`${name}\` | ${fallback ? `\`${fallback}\`` : ''} | ${meaning} |`,
      ),
    ].join('\n'),
  ).join('\n\n');
}
