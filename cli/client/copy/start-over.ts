import { WindlassError } from '../../../clients/typescript/src/error.ts';

/** A file that is written all the time is given up. */
const MAX = 5;

/** Does the work, and again from its beginning where its source has changed meanwhile. */
export async function startOver<T>(work: () => Promise<T>): Promise<T> {
  for (let times = 1; ; times++) {
    try {
      return await work();
    } catch (error) {
      const isChanged = error instanceof WindlassError && error.code === 'changed';
      if (!isChanged || times === MAX) throw error;
    }
  }
}
