import { describeUnless } from './skip.ts';
import { type Stack, type StackOptions, startStack } from './stack.ts';

export interface Form {
  name: 'embedded' | 'fleet';
  /** startStack() on this form. */
  start(options?: StackOptions): Promise<Stack>;
}

/** Runs the tests of `body` once on each form of Windlass: what is true over HTTP is true of both. */
export function describeForms(
  missing: Parameters<typeof describeUnless>[0],
  name: string,
  body: (form: Form) => void,
): void {
  describeUnless(missing, `${name}, embedded`, () => body({ name: 'embedded', start: startStack }));
}
