import type { JobFilter } from '@windlass/client';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useHosts } from '../service/hosts.ts';
import type { JobState } from '../service/jobs.ts';
import type { CurrentUser } from '../service/user.ts';

const STATES: Record<string, JobState[]> = {
  Active: ['queued', 'running'],
  Failed: ['failed'],
  Succeeded: ['succeeded'],
  Cancelled: ['cancelled'],
};
const KINDS = {
  command: 'Commands',
  batch: 'Batch jobs',
  video: 'Videos',
  parse: 'Parsed uploads',
  view: 'Views of tables',
  copy: 'Copies',
  connect: 'Logins',
  look: 'Looks at files',
};
/** What the page of files asks again and again: shown to who asks for it. */
const LOOKS: JobKind[] = ['browse', 'file'];
const WORK: JobKind[] = [
  ...(['answer', 'batch', 'command', 'connect', 'copy', 'parse'] as const),
  ...(['remove-file', 'scan-host', 'video', 'view', 'write-file'] as const),
];
type JobKind = NonNullable<JobFilter['kind']>[number];
const TYPING_MS = 250;

type Filter = Partial<Record<'state' | 'kind' | 'search' | 'by' | 'host' | 'owner', string>>;

/** Filters as the address has them. */
export const readFilter = (search: URLSearchParams): Filter => Object.fromEntries(search);

/** What of it is asked of the service. */
export function toQuery({ state, kind, search, by, host, owner }: Filter): JobFilter {
  return {
    state: state === undefined ? undefined : STATES[state],
    kind: kind === 'look' ? LOOKS : WORK.filter(each => kind === undefined || each === kind),
    label: by === 'name' ? undefined : search,
    name: by === 'name' ? search : undefined,
    host,
    owner,
  };
}

interface JobFiltersProps {
  filter: Filter;
  user: CurrentUser;
  onChange: (changes: Filter) => void;
}

export function JobFilters({ filter, user, onChange }: JobFiltersProps) {
  return (
    <div class="row filters">
      <div class="tabs" role="radiogroup" aria-label="State">
        {['All', ...Object.keys(STATES)].map(name => (
          <label key={name}>
            <input
              type="radio"
              name="state"
              checked={(filter.state ?? 'All') === name}
              onChange={() => onChange({ state: name === 'All' ? undefined : name })}
            />
            {name}
          </label>
        ))}
      </div>
      <SearchBox filter={filter} onChange={onChange} />
      <select
        class="input"
        aria-label="Kind"
        value={filter.kind ?? ''}
        onChange={event => onChange({ kind: event.currentTarget.value })}
      >
        <option value="">All kinds</option>
        {Object.entries(KINDS).map(([kind, name]) => (
          <option key={kind} value={kind}>
            {name}
          </option>
        ))}
      </select>
      <HostSelect host={filter.host} onChange={host => onChange({ host })} />
      {user.administrator && (
        <select
          class="input"
          aria-label="Owner"
          value={filter.owner ?? ''}
          onChange={event => onChange({ owner: event.currentTarget.value })}
        >
          <option value="">My jobs</option>
          <option value="*">Everyone's jobs</option>
          {filter.owner && filter.owner !== '*' && <option>{filter.owner}</option>}
        </select>
      )}
    </div>
  );
}

function HostSelect({
  host = '',
  onChange,
}: {
  host: string | undefined;
  onChange: (host: string) => void;
}) {
  const { data = [] } = useHosts();
  const names = new Set([...data.map(({ name }) => name), host].filter(Boolean));
  if (names.size === 0) return null;
  return (
    <select
      class="input"
      aria-label="Host"
      value={host}
      onChange={event => onChange(event.currentTarget.value)}
    >
      <option value="">All hosts</option>
      {[...names].map(name => (
        <option key={name}>{name}</option>
      ))}
    </select>
  );
}

/** Asks once the user stops typing. What the address is changed to elsewhere stands in it, too. */
function SearchBox({ filter, onChange }: Pick<JobFiltersProps, 'filter' | 'onChange'>) {
  const { by = 'label', search = '' } = filter;
  const [text, setText] = useState(search);
  const known = useRef(search);
  useEffect(() => {
    if (search !== known.current) {
      known.current = search;
      setText(search);
      return;
    }
    if (text === search) return;
    const timer = setTimeout(() => {
      known.current = text;
      onChange({ search: text });
    }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [text, search, onChange]);
  return (
    <search class="search">
      <select
        class="input"
        aria-label="Search by"
        value={by}
        onChange={event => onChange({ by: event.currentTarget.value })}
      >
        <option value="label">Label</option>
        <option value="name">Name</option>
      </select>
      <input
        class="input"
        type="search"
        aria-label={by === 'name' ? 'The whole name' : 'A part of the label'}
        placeholder={by === 'name' ? 'The whole name' : 'A part of the label'}
        value={text}
        onInput={event => setText(event.currentTarget.value)}
      />
    </search>
  );
}
