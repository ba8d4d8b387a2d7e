import { configDefaults, defineConfig } from 'vitest/config';
import { LongestFirst } from './test/harness/order.ts';
import { GROUPS } from './test/together/groups.ts';

// Longer than what a test waits for inside, so that it is told what did not come.
// On a shared machine a test of real processes may meet a moment that it did not foresee: there it is tried once more, and
// `npm test` names it at the end. Everywhere else the first failure counts.
const patience = { testTimeout: 90_000, hookTimeout: 120_000, retry: process.env.CI ? 1 : 0 };

// `npm test` without the name of a file: files that can share a stack do.
const grouped = process.env.TEST_TOGETHER
  ? Object.values(GROUPS).flatMap(files => files.map(file => `test/${file}.test.ts`))
  : ['test/together/**'];

export default defineConfig({
  test: {
    globalSetup: 'test/harness/global-setup.ts',
    pool: 'forks',
    // Each acceptance test runs a whole stack beside itself; much of the time is spent waiting for it.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          name: 'unit',
          include: ['{api,workers,shared,cli,servers,demo,scripts,bench}/**/*.test.ts'],
          ...patience,
        },
      },
      {
        test: {
          name: 'acceptance',
          include: ['test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...grouped],
          ...patience,
        },
      },
    ],
  },
});
