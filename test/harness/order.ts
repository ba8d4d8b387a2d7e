import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** What takes longest: begun last, it would run alone at the end. */
const LONGEST = [
  'test/http/schemathesis.test.ts',
  'test/interface/acceptance.test.ts',
  'test/together/remote.test.ts',
  'test/together/work.test.ts',
  'test/faults/faults.test.ts',
  'test/together/projects.test.ts',
  'test/together/http.test.ts',
  'test/together/unlimited.test.ts',
  'test/operations/monitoring.test.ts',
  'test/operations/demo.test.ts',
  'cli/embedded-postgres/postgres.test.ts',
  'test/operations/outages.test.ts',
];

/** The longest first, then as vitest would. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const place = LONGEST.findIndex(path => moduleId.endsWith(`/${path}`));
      return place === -1 ? LONGEST.length : place;
    };
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}
