import { unwrap } from '../../clients/typescript/src/api.ts';
import { connectTo, findService } from '../client/connect.ts';

/** Nobody waits longer for the completion of a word. */
const ANSWER_MS = 2_000;

/** The hosts of the service that this user is logged in to; none where it does not answer. */
export async function readHostNames(): Promise<string[]> {
  try {
    const { api } = connectTo(await findService());
    const signal = AbortSignal.timeout(ANSWER_MS);
    const { items } = await unwrap(api.GET('/api/hosts', { signal }));
    return items.map(({ name }) => name);
  } catch {
    return [];
  }
}
