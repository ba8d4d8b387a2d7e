/** `npm test [-- vitest's arguments]`, `npm run test:faults`: every test, and what was skipped and why. */
import { parseCLI, startVitest } from 'vitest/node';
import {
  buildPrograms,
  canBuild,
  canInstall,
  canInstallSchemathesis,
  installPrograms,
  installSchemathesis,
  listMissingPrograms,
  listUnbuiltPrograms,
} from './install-programs.ts';
import { BUILT_PROGRAMS, findSchemathesis, SCHEMATHESIS, TEST_PROGRAMS } from './programs.ts';
import { describeRun, SummaryReporter } from './summary-reporter.ts';

const args = process.argv.slice(2);
if (args.includes('--faults')) process.env.FAULTS = 'full';
const { filter, options } = parseCLI(['vitest', 'run', ...args.filter(arg => arg !== '--faults')]);
if (filter.length === 0) process.env.TEST_TOGETHER = '1';
// What --reporter gives; the types do not name it.
const { reporter, ...settings } = options as typeof options & { reporter?: string[] };

const wanted = listMissingPrograms();
if (wanted.length > 0 && canInstall()) {
  console.error(`Installing what tests use and this machine lacks: ${wanted.join(', ')} …`);
  installPrograms(wanted);
}
const unbuilt = listUnbuiltPrograms();
if (unbuilt.length > 0 && canBuild()) {
  console.error(`Building what tests use, once, a few minutes: ${unbuilt.join(', ')} …`);
  buildPrograms(unbuilt);
}
if (findSchemathesis() === undefined && canInstallSchemathesis()) {
  console.error('Installing what tests use, once: Schemathesis …');
  installSchemathesis();
}
for (const name of listMissingPrograms()) {
  console.error(`Not on this machine: ${name} (Debian: ${TEST_PROGRAMS[name]}).`);
}
for (const name of listUnbuiltPrograms()) {
  console.error(`Not on this machine: ${name} (go install ${BUILT_PROGRAMS[name]}).`);
}
if (findSchemathesis() === undefined) {
  console.error(`Not on this machine: Schemathesis (Python: schemathesis==${SCHEMATHESIS}).`);
}

const summary = new SummaryReporter();
const vitest = await startVitest('test', filter, {
  ...settings,
  watch: false,
  reporters: [...(reporter ?? ['default']), summary],
});
await vitest.close();

const { passed, failed, skipped, flaky } = summary;
const avoidable = skipped.filter(test => test.obtainable);
const isAvoidable = process.env.CI === 'true' && canInstall() && avoidable.length > 0;
if (isAvoidable) {
  console.error(`This machine could have run ${avoidable.length} of the skipped tests: CI fails.`);
}
console.log(describeRun({ passed, failed, skipped, flaky }));
const hasFailed = failed > 0 || isAvoidable || Boolean(process.exitCode);
// A test's forgotten handle must not keep the command from ending.
process.exit(hasFailed ? 1 : 0);
