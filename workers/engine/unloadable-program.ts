/**
 * A child process could not load its modules, as while packages are installed anew: its job is not to blame, and its
 * attempt counts as a loss.
 */
export class UnloadableProgram extends Error {
  override name = 'UnloadableProgram';
}

const CODES = ['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND', 'ERR_DLOPEN_FAILED'];

/** Whether an import failed because the module, or a library of it, is not there. */
export const isUnloadable = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && CODES.some(code => code === error.code);

/** Whether this is what Node prints when such an error ends it. */
export const saysUnloadable = (stderr: string): boolean =>
  CODES.some(code => stderr.includes(`code: '${code}'`));
