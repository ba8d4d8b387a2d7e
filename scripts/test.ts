/** `npm test [-- vitest's arguments]`, `npm run test:faults`: runs tests, and lists what was skipped and why. */
import { parseCLI, startVitest } from 'vitest/node';
import { canInstall, listAbsent, setUpPrograms } from './install-programs.ts';
import { SummaryReporter } from './summary-reporter.ts';

/** Long forms of the tests: see docs/testing.md. */
const LONG_FORMS: Record<string, Record<string, string>> = {
  '--faults': { FAULTS: 'full' },
  '--both-forms': { TEST_FORMS: 'both' },
};

const args = process.argv.slice(2);
for (const [flag, environment] of Object.entries(LONG_FORMS)) {
  if (args.includes(flag)) Object.assign(process.env, environment);
}
const { filter, options } = parseCLI([
  'vitest',
  'run',
  ...args.filter(arg => !Object.hasOwn(LONG_FORMS, arg)),
]);
// What --reporter gives; the types do not name it.
const { reporter, ...settings } = options as typeof options & { reporter?: string[] };

// One file is to begin at once; tests that lack a program are skipped.
const isWhole = filter.length === 0 && options.root === undefined && options.project === undefined;
if (isWhole) setUpPrograms();
for (const line of listAbsent()) console.error(line);

const summary = new SummaryReporter();
await run(filter, settings);
// Until the suite has passed ten times in a row, CI runs the files that failed once more, two at a time.
const again = process.env.CI ? summary.failedFiles : [];
if (again.length > 0) {
  process.exitCode = 0;
  process.env.TEST_WORKERS = '2';
  await run(again, settings);
}

const avoidable = summary.skipped.filter(test => test.obtainable);
const isAvoidable = process.env.CI === 'true' && canInstall() && avoidable.length > 0;
if (isAvoidable) {
  console.error(`This machine could have run ${avoidable.length} of the skipped tests: CI fails.`);
}
console.log(summary.describe());
const hasFailed = summary.failed > 0 || isAvoidable || Boolean(process.exitCode);
// A test's forgotten handle must not keep the command from ending.
process.exit(hasFailed ? 1 : 0);

async function run(files: string[], chosen: typeof settings): Promise<void> {
  const reporters = [...(reporter ?? ['default']), summary];
  const vitest = await startVitest('test', files, { ...chosen, watch: false, reporters });
  await vitest.close();
}
