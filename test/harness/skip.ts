import { describe, type TestContext, test } from 'vitest';
import { findProgram, TEST_PROGRAMS, type TestProgram } from '../../scripts/programs.ts';

declare module 'vitest' {
  interface TaskMeta {
    /** Set on a skipped test whose reason root and apt-get could have removed. */
    obtainable?: boolean;
  }
}

/** Why something cannot be tested here. */
export interface SkipReason {
  reason: string;
  /** True where root with apt-get could have it: `CI=true npm test` fails on such a skip there. */
  obtainable: boolean;
}

/** Undefined when all of these programs are here, and otherwise why the test has to be skipped. */
export function missingPrograms(...names: TestProgram[]): SkipReason | undefined {
  const missing = names.filter(name => findProgram(name) === undefined);
  if (missing.length === 0) return undefined;
  const packages = missing.map(name => TEST_PROGRAMS[name]).join(', ');
  return { reason: `needs ${missing.join(', ')} (Debian: ${packages})`, obtainable: true };
}

export function missingRoot(): SkipReason | undefined {
  if (process.getuid?.() === 0) return undefined;
  return { reason: 'needs root, to make a throwaway account', obtainable: true };
}

/** Skips the test that is running; `npm test` lists it with its reason at the end. */
export function skipTest(context: TestContext, skip: SkipReason): never {
  context.task.meta.obtainable = skip.obtainable;
  return context.skip(skip.reason);
}

/** A suite, or, where there is a reason against it, one skipped test in its place that names the reason. */
export function describeUnless(
  skip: SkipReason | undefined,
  name: string,
  suite: () => void,
): void {
  if (skip === undefined) describe(name, suite);
  else test(name, context => skipTest(context, skip));
}
