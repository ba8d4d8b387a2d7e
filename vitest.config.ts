import { defineConfig } from 'vitest/config';

// Longer than what a test waits for inside, so that it is told what did not come.
// On a shared machine a test of real processes may meet a moment that it did not foresee: there it is tried once more, and
// `npm test` names it at the end. Everywhere else the first failure counts.
const patience = { testTimeout: 90_000, hookTimeout: 120_000, retry: process.env.CI ? 1 : 0 };

export default defineConfig({
  test: {
    globalSetup: 'test/harness/global-setup.ts',
    pool: 'forks',
    // Each acceptance test runs a whole stack beside itself.
    maxWorkers: 2,
    projects: [
      {
        test: {
          name: 'unit',
          include: ['{api,workers,shared,embedded,demo,scripts,bench}/**/*.test.ts'],
          ...patience,
        },
      },
      { test: { name: 'acceptance', include: ['test/**/*.test.ts'], ...patience } },
    ],
  },
});
