import { readFileSync } from 'node:fs';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that take longest: one that begins last would run alone at the end. */
const LONGEST = [
  'test/interface/acceptance.test.ts',
  'test/http/schemathesis.test.ts',
  'test/faults/faults.test.ts',
  'test/faults/redis.test.ts',
  'test/clients/python.test.ts',
  'test/remote/host-outages.test.ts',
  'test/operations/demo.test.ts',
  'test/operations/outages.test.ts',
  'test/operations/monitoring.test.ts',
  'test/operations/fleet.test.ts',
  'test/operations/compose.test.ts',
  'test/operations/previous-release.test.ts',
];
/** The longest of the files that share a stack. */
const LONGEST_SHARED = [
  'test/remote/worker-killed.test.ts',
  'test/remote/worker-lost.test.ts',
  'test/jobs/videos.test.ts',
  'test/jobs/commands.test.ts',
  'test/remote/accounts.test.ts',
  'test/remote/disks.test.ts',
];
const OWN_STACK = /\b(startStack\(|alone:|env\b)/;

/**
 * The longest files first, then those with stacks of their own, unit tests that run programs, files that share a stack,
 * which are short, and other unit tests. Files of one project, and files that share a stack, stand together: a worker
 * process keeps what it has.
 */
export class TestOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const ranks = new Map(files.map(file => [file, rank(file)]));
    return (await super.sort(files)).sort((a, b) => (ranks.get(a) ?? 0) - (ranks.get(b) ?? 0));
  }
}

function rank({ project, moduleId }: TestSpecification): number {
  const place = LONGEST.findIndex(path => moduleId.endsWith(`/${path}`));
  if (place !== -1) return place;
  if (project.name === 'programs') return LONGEST.length + 1;
  if (project.name === 'unit') return LONGEST.length + 4;
  if (OWN_STACK.test(readFileSync(moduleId, 'utf8'))) return LONGEST.length;
  const isLong = LONGEST_SHARED.some(path => moduleId.endsWith(`/${path}`));
  return LONGEST.length + (isLong ? 2 : 3);
}
