import { configDefaults, defineConfig } from 'vitest/config';
import { TestOrder } from './test/harness/order.ts';

const SOURCES = '{api,workers,shared,cli,clients,console,servers,demo,scripts,bench}';
/** Tests beside the sources that run servers, shells, ffmpeg or compiled programs and threads. */
const WITH_PROGRAMS = [
  'workers/{host-agent,video,ssh,remote-files,sandbox}/**/*.test.ts',
  'workers/runs/run-on-host.test.ts',
  'workers/batch/{slurm-status,submissions}.test.ts',
  'cli/{embedded-postgres,supervisor}/**/*.test.ts',
  'cli/data-dir/lock.test.ts',
  'scripts/!(pages|make-docs|linear-expressions).test.ts',
  'api/remote/threaded-key-parser.test.ts',
  'shared/storage/s3-store.test.ts',
  'docs/model/model.test.ts',
];

/** Servers and processes take a while on a busy machine. Waits inside a test are shorter, so that they name what did not come. */
const forPrograms = {
  globalSetup: 'test/harness/global-setup.ts',
  testTimeout: 180_000,
  hookTimeout: 240_000,
};

// docs/testing.md says what runs where.
export default defineConfig({
  test: {
    pool: 'forks',
    // A page of the console on a busy machine takes more than the second that is the default.
    expect: { poll: { timeout: 20_000 } },
    // Worker processes go on from file to file: starting one and loading the sources costs a second of processor time, and
    // files share stacks.
    isolate: false,
    // Five at once left two cores idle for 0.8 % of a run, while workers of stacks, most of which only waited, took a fifth
    // of it. The projects take what stands here, whatever vitest's own option says.
    maxWorkers: Number(process.env.TEST_WORKERS ?? 4),
    sequence: { sequencer: TestOrder },
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: [`${SOURCES}/**/*.test.ts`],
          exclude: [...configDefaults.exclude, ...WITH_PROGRAMS],
          testTimeout: 30_000,
        },
      },
      { extends: true, test: { name: 'programs', include: WITH_PROGRAMS, ...forPrograms } },
      {
        extends: true,
        test: { name: 'acceptance', include: ['test/**/*.test.ts'], ...forPrograms },
      },
    ],
  },
});
