import { unwrap } from './api.ts';
import type { Connection } from './connection.ts';
import { ANSWER_MS } from './http.ts';
import type { Job } from './jobs.ts';
import type { Options } from './options.ts';
import { requireLimit } from './require-whole.ts';
import type { components, operations } from './schema.ts';

export type JobFilter = Options<NonNullable<operations['listJobs']['parameters']['query']>>;
type OneOrMore<T> = T extends (infer One)[] ? One | One[] : T;
export type JobsOptions = Omit<JobFilter, 'state' | 'kind'> & {
  state?: OneOrMore<JobFilter['state']> | undefined;
  kind?: OneOrMore<JobFilter['kind']> | undefined;
  signal?: AbortSignal | undefined;
};
export type ListedJob = Job | components['schemas']['ForeignJob'];

const PAGE = 100;

/** Jobs that match, the latest first. */
export async function* listJobs(
  { api }: Connection,
  { signal, limit = Infinity, ...filter }: JobsOptions,
): AsyncGenerator<ListedJob> {
  requireLimit(limit);
  let left = limit;
  for (let after: string | undefined | null = filter.after; after !== null && left > 0; ) {
    const query = { ...filter, after, limit: Math.min(left, PAGE) } as JobFilter;
    const sending = { params: { query }, signal, timeoutMs: ANSWER_MS };
    const page = await unwrap(api.GET('/api/jobs', sending));
    yield* page.items;
    left -= page.items.length;
    after = page.next;
  }
}
