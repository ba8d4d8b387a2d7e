import type { Reporter, TestCase, TestModule } from 'vitest/node';

export interface SkippedTest {
  name: string;
  reason: string;
  /** Root with apt-get could have had what it needs. */
  obtainable: boolean;
}

/** Counts what a test run came to. A file that fails outside its tests counts as one failed test. */
export class SummaryReporter implements Reporter {
  passed = 0;
  failed = 0;
  readonly skipped: SkippedTest[] = [];
  /** Tests that passed only when they were tried again: each is a fault, of the test or of what it tests. */
  readonly flaky: string[] = [];

  onTestRunEnd(modules: ReadonlyArray<TestModule>, errors: ReadonlyArray<unknown>): void {
    this.failed += errors.length;
    for (const module of modules) {
      const failedBefore = this.failed;
      for (const test of module.children.allTests()) this.count(test);
      if (module.state() === 'failed' && this.failed === failedBefore) this.failed++;
    }
  }

  private count(test: TestCase): void {
    const result = test.result();
    if (test.diagnostic()?.flaky)
      this.flaky.push(`${test.module.relativeModuleId}: ${test.fullName}`);
    if (result.state === 'passed') this.passed++;
    else if (result.state === 'skipped') {
      this.skipped.push({
        name: `${test.module.relativeModuleId}: ${test.fullName}`,
        reason: result.note ?? 'no reason is given',
        obtainable: Boolean((test.meta() as { obtainable?: boolean }).obtainable),
      });
    } else this.failed++;
  }
}

/** What is skipped and why, one reason a line, and last the counts alone on theirs. */
export function describeRun(run: {
  passed: number;
  failed: number;
  skipped: SkippedTest[];
  flaky?: string[];
}): string {
  const lines = run.skipped.map(({ name, reason }) => `skipped: ${name} (${reason})`);
  const flaky = (run.flaky ?? []).map(name => `passed at the second try only: ${name}`);
  return [
    ...lines,
    ...flaky,
    `${run.passed} passed, ${run.failed} failed, ${run.skipped.length} skipped`,
  ].join('\n');
}
