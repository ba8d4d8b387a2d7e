import { unavailable } from '../errors/errors.ts';

/** Awaits the work, but throws `unavailable` after `ms` milliseconds; the work itself goes on. */
export async function withDeadline<T>(
  { ms, what }: { ms: number; what: string },
  work: () => Promise<T>,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const problem = `${what} did not answer within ${ms / 1_000} seconds.`;
    timer = setTimeout(() => reject(unavailable(problem, 'Try again.', 2)), ms);
  });
  try {
    return await Promise.race([work(), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** The deadline of shared queries, longer than the statement timeout of the server. */
export const DATABASE_DEADLINE = { ms: 15_000, what: 'the database' };
