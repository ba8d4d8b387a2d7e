const NAMES = [
  ...(['state', 'kind', 'search', 'by', 'host', 'owner', 'project', 'model'] as const),
  ...(['session', 'within', 'since', 'until'] as const),
];
/** Filters as the address has them. */
export type Filter = Partial<Record<(typeof NAMES)[number], string>>;

export const STATES = new Map<
  string,
  ('queued' | 'running' | 'succeeded' | 'failed' | 'cancelled')[]
>([
  ['Active', ['queued', 'running']],
  ['Failed', ['failed']],
  // Their commands came to an end of their own, whatever exit status they gave.
  ['Completed', ['succeeded']],
  ['Cancelled', ['cancelled']],
]);
/** What the page of files requests repeatedly: shown only where it is asked for. */
const LOOKS = ['browse', 'file'] as const;
const WORK = [
  ...(['answer', 'batch', 'command', 'connect', 'copy', 'parse'] as const),
  ...(['remove-file', 'scan-host', 'video', 'view', 'write-file'] as const),
];
const HOUR = 3_600_000;
/** Periods until now, by their names in the address. */
export const PERIODS = new Map([
  ['hour', { name: 'Last hour', ms: HOUR }],
  ['day', { name: 'Last 24 hours', ms: 24 * HOUR }],
  ['week', { name: 'Last 7 days', ms: 168 * HOUR }],
  ['month', { name: 'Last 30 days', ms: 720 * HOUR }],
]);

export const readFilter = (search: URLSearchParams): Filter =>
  Object.fromEntries(NAMES.flatMap(name => (search.get(name) ? [[name, search.get(name)]] : [])));

/** Whether the filter asks for others' jobs: these are filtered by state, kind, host and time alone. */
export const isOfOthers = ({ owner }: Filter, me: string): boolean =>
  owner !== undefined && owner !== me;

/** The filter as the service takes it. */
export function toQuery(filter: Filter, { me, now }: { me: string; now: number }) {
  const { state, kind, search, by, host, owner, project, model, session, within } = filter;
  const period = PERIODS.get(within ?? '');
  const own = { name: undefined, label: undefined, project, model, session };
  return {
    state: STATES.get(state ?? ''),
    kind: kind === 'look' ? [...LOOKS] : WORK.filter(each => kind === undefined || each === kind),
    host,
    owner,
    since: period ? new Date(now - period.ms).toISOString() : readTime(filter.since),
    until: period ? undefined : readTime(filter.until),
    ...(!isOfOthers(filter, me) && {
      ...own,
      ...(search !== undefined && { [by === 'name' ? 'name' : 'label']: search }),
    }),
  };
}

function readTime(text: string | undefined): string | undefined {
  const time = Date.parse(text ?? '');
  return Number.isNaN(time) ? undefined : new Date(time).toISOString();
}
