const codeOf = (error: unknown) => (error as NodeJS.ErrnoException | undefined)?.code ?? '';

/** Whether a system call failed because the disk, or what its user may store there, is full. */
export const isDiskFull = (error: unknown): boolean => ['ENOSPC', 'EDQUOT'].includes(codeOf(error));

/** Whether the disk is full, or no file may become as large. */
export const isOutOfSpace = (error: unknown): boolean =>
  isDiskFull(error) || codeOf(error) === 'EFBIG';
