import type { Reporter, TestCase, TestModule } from 'vitest/node';

interface SkippedTest {
  name: string;
  reason: string;
  /** Root with apt-get could have had what it needs. */
  obtainable: boolean;
}

interface FileResult {
  passed: number;
  /** The names of failed tests; the file's own where it fails outside its tests. */
  failed: string[];
  skipped: SkippedTest[];
}

/** Collects what a test run came to. A file that is run again replaces its earlier result. */
export class SummaryReporter implements Reporter {
  readonly #files = new Map<string, FileResult>();
  /** Errors outside any file. */
  #errors = 0;
  /** Tests of files that passed only when they were run again: each is a fault, of the test or of what it tests. */
  readonly flaky: string[] = [];

  onTestRunEnd(modules: ReadonlyArray<TestModule>, errors: ReadonlyArray<unknown>): void {
    this.#errors += errors.length;
    for (const module of modules) {
      const file = module.relativeModuleId;
      const before = this.#files.get(file);
      const result = toResult(module);
      this.#files.set(file, result);
      if (before && result.failed.length === 0) this.flaky.push(...before.failed);
    }
  }

  get failedFiles(): string[] {
    return [...this.#files].filter(([, { failed }]) => failed.length > 0).map(([file]) => file);
  }

  get passed(): number {
    return this.#results.reduce((sum, { passed }) => sum + passed, 0);
  }

  get failed(): number {
    return this.#results.reduce((sum, { failed }) => sum + failed.length, this.#errors);
  }

  get skipped(): SkippedTest[] {
    return this.#results.flatMap(({ skipped }) => skipped);
  }

  get #results(): FileResult[] {
    return [...this.#files.values()];
  }

  /** What is skipped and why, what passed at the second try only, one a line, and last the counts on a line of their own. */
  describe(): string {
    return [
      ...this.skipped.map(({ name, reason }) => `skipped: ${name} (${reason})`),
      ...this.flaky.map(name => `passed at the second try only: ${name}`),
      `${this.passed} passed, ${this.failed} failed, ${this.skipped.length} skipped`,
    ].join('\n');
  }
}

function toResult(module: TestModule): FileResult {
  const result: FileResult = { passed: 0, failed: [], skipped: [] };
  for (const test of module.children.allTests()) {
    const { state } = test.result();
    if (state === 'passed') result.passed++;
    else if (state === 'skipped') result.skipped.push(toSkipped(test));
    else result.failed.push(nameOf(test));
  }
  if (module.state() === 'failed' && result.failed.length === 0)
    result.failed.push(module.relativeModuleId);
  return result;
}

function toSkipped(test: TestCase): SkippedTest {
  const { note } = test.result() as { note?: string };
  return {
    name: nameOf(test),
    reason: note ?? 'no reason is given',
    obtainable: Boolean((test.meta() as { obtainable?: boolean }).obtainable),
  };
}

function nameOf(test: TestCase): string {
  return `${test.module.relativeModuleId}: ${test.fullName}`;
}
