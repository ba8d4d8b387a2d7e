/** A command cannot do its work: one line for the person who gave it, and a hint what to do. */
export class CommandError extends Error {
  readonly hint: string | undefined;

  constructor(message: string, options: { hint?: string; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.name = 'CommandError';
    this.hint = options.hint;
  }
}

/** The code of a failed system call, such as `ENOENT`. */
export function errnoOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** Why a system call failed, in words: of `ENOENT: no such file or directory, open '/x'` those in the middle. */
export const reasonOf = (error: unknown): string =>
  String(error instanceof Error ? error.message : error).replace(/^[A-Z]+: ([^,]+), .*$/s, '$1');

/** A handler for a rejected promise: the value where the file is missing; throws other errors. */
export const ifMissing =
  <T>(value: T) =>
  (error: unknown): T => {
    if (errnoOf(error) === 'ENOENT') return value;
    throw error;
  };
