import { expect, test } from 'vitest';
import type { z } from 'zod';
import { JOB_KINDS, JOBS, type JobKind } from './catalog.ts';
import { SUPPORTED_VERSIONS, versionNeeded } from './payload-versions.ts';

const video = { type: 'video/mp4', fps: 25 };

test.each([
  ['command', { command: 'true', cwd: 'run' }, { command: 'true', cwd: '~/run' }],
  ['command', { command: 'true', cwd: '~other' }, { command: 'true', cwd: '~' }],
  ['batch', { command: 'true', cwd: '/run' }, { command: 'true', cwd: '~/run' }],
  ['video', { ...video, pattern: '/d/%d.png' }, { ...video, pattern: '/50%damping/%d.png' }],
  ['video', { ...video, images: ['/50%damping/%d'] }, { ...video, pattern: '/%d/*.png' }],
] as [JobKind, object, object][])(
  'a %s of a form that older workers understand is for them too: %j, not %j',
  (kind, older, newer) => {
    const newest = SUPPORTED_VERSIONS[kind] ?? 0;
    expect(versionNeeded(kind, older)).toBe(newest - 1);
    expect(versionNeeded(kind, newer)).toBe(newest);
  },
);

test.each(JOB_KINDS)(
  'what is stored of a %s is read by its shape, whatever the rules are',
  kind => {
    expect(rulesOf(JOBS[kind].payload)).toEqual([]);
  },
);

test('a rule is found wherever it is in a shape', () => {
  expect(rulesOf(JOBS.batch.payload.extend(JOBS.batch.rules))).toEqual(
    expect.arrayContaining(['.script', '.env', '.env.keys', '.options[]', '.nodes']),
  );
});

type Part = z.core.$ZodType;

/** Where a schema checks more than types: a whole number is a type. */
function rulesOf(schema: Part, at = ''): string[] {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  const own = (def.checks ?? []).some(({ _zod }) => _zod.def.check !== 'number_format') ? [at] : [];
  return [
    ...own,
    ...partsOf(schema as z.core.$ZodTypes).flatMap(([name, part]) => rulesOf(part, at + name)),
  ];
}

function partsOf(schema: z.core.$ZodTypes): [string, Part][] {
  const { def } = schema._zod;
  switch (def.type) {
    case 'object':
      return Object.entries(def.shape).map(([name, part]) => [`.${name}`, part]);
    case 'array':
      return [['[]', def.element]];
    case 'record':
      return [
        ['.keys', def.keyType],
        ['', def.valueType],
      ];
    case 'optional':
    case 'nullable':
      return [['', def.innerType]];
    case 'string':
    case 'number':
    case 'boolean':
    case 'enum':
      return [];
    default:
      throw new Error(`a ${def.type} is no shape that is known here`);
  }
}
