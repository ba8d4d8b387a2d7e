import { useMemo } from 'preact/hooks';
import { Link } from 'wouter-preact';
import { serviceNow } from '../service/clock.ts';
import {
  type AuditAction,
  type AuditEntry,
  type AuditFilter,
  useAudit,
} from '../service/operations.ts';
import { Empty } from '../ui/empty.tsx';
import { More } from '../ui/more.tsx';
import { Problem } from '../ui/problem.tsx';
import { type Column, Table } from '../ui/table.tsx';
import { Time } from '../ui/time.tsx';
import { useAddress } from '../ui/use-address.ts';
import { Wait } from '../ui/wait.tsx';

const ACTIONS: AuditAction[] = [
  ...(['login', 'logout', 'password', 'token.create', 'token.delete'] as const),
  ...(['user.create', 'user.promote', 'user.demote', 'user.disable', 'user.enable'] as const),
  ...(['user.update', 'user.delete'] as const),
  ...(['host.create', 'host.update', 'host.delete', 'session.open', 'session.close'] as const),
  ...(['command', 'file.write', 'file.remove', 'job.cancel', 'job.remove', 'link'] as const),
  ...(['webhook.create', 'webhook.delete', 'project.acl', 'project.delete'] as const),
  ...(['worker', 'backup', 'restore', 'keys.rotate', 'retention.remove'] as const),
];
const DAYS = [1, 7, 30, 365];
const DAY_MS = 86_400_000;

/** Who did what. */
export function Audit() {
  const [search, change] = useAddress();
  const user = search.get('user') ?? '';
  const action = ACTIONS.find(each => each === search.get('action'));
  const days = DAYS.find(each => String(each) === search.get('days')) ?? 1;
  const filter = useMemo<AuditFilter>(
    () => ({
      since: new Date(serviceNow() - days * DAY_MS).toISOString(),
      ...(user !== '' && { user }),
      ...(action && { action }),
    }),
    [user, action, days],
  );
  const list = useAudit(filter);
  const { data, error, hasNextPage, isPlaceholderData } = list;
  const entries = data?.pages.flatMap(page => page.items) ?? [];
  return (
    <>
      <div class="page-head">
        <h2>Audit</h2>
        <div class="row">
          <input
            class="input short"
            type="search"
            aria-label="User"
            placeholder="User"
            value={user}
            onInput={event => change({ user: event.currentTarget.value })}
          />
          <select
            class="input short"
            aria-label="Action"
            value={action ?? ''}
            onChange={event => change({ action: event.currentTarget.value })}
          >
            <option value="">All actions</option>
            {ACTIONS.map(each => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </select>
          <select
            class="input short"
            aria-label="Since"
            value={days}
            onChange={event => change({ days: event.currentTarget.value })}
          >
            {DAYS.map(each => (
              <option key={each} value={each}>
                {each === 1 ? 'The last day' : `The last ${each} days`}
              </option>
            ))}
          </select>
        </div>
      </div>
      {error && <Problem error={error} />}
      {(!data || isPlaceholderData) && !error && <Wait>Asking for entries …</Wait>}
      {data && (
        <div class="card" aria-busy={isPlaceholderData}>
          {entries.length === 0 && !hasNextPage ? (
            <Empty title="No entry matches">
              <p>Nobody did that in this time. Choose another user, action or time.</p>
            </Empty>
          ) : (
            <Entries entries={entries} />
          )}
          <More list={list}>Earlier entries</More>
        </div>
      )}
    </>
  );
}

const Entries = ({ entries }: { entries: AuditEntry[] }) => (
  <Table look="audit" label="Audit" rows={entries} keyOf={({ seq }) => seq} columns={COLUMNS} />
);

/** What is told of a text that may hold secrets, by the action. */
const DIGESTS: Partial<Record<AuditAction, string>> = {
  command: 'SHA-256 of the command',
  'file.write': 'SHA-256 of the path',
  'file.remove': 'SHA-256 of the path',
};
/** A job is made in the transaction that writes the entry. */
const AROUND_MS = 1_000;

function Target({ entry: { action, target, user, time } }: { entry: AuditEntry }) {
  const digest = DIGESTS[action];
  const at = (by: number) => new Date(Date.parse(time) + by).toISOString();
  const around = { owner: user ?? '', since: at(-AROUND_MS), until: at(AROUND_MS) };
  return (
    <>
      <span class="mono ellipsis" title={target ?? undefined}>
        {target}
      </span>
      {digest && (
        <span class="below muted">
          {digest}. <Link href={`/jobs?${new URLSearchParams(around)}`}>Its job</Link>
        </span>
      )}
      {action === 'job.cancel' && (
        <span class="below">
          <Link href={`/jobs/${target}`}>The job</Link>
        </span>
      )}
    </>
  );
}

const COLUMNS: Column<AuditEntry>[] = [
  { name: 'Time', cell: ({ time }) => <Time at={time} /> },
  { name: 'User', cell: ({ user }) => user ?? <span class="muted">unknown</span> },
  {
    name: 'Action',
    cell: ({ action, outcome }) => (
      <>
        {action}
        {outcome === 'refused' && (
          <>
            {' '}
            <span class="badge" data-state="failed">
              Refused
            </span>
          </>
        )}
      </>
    ),
  },
  {
    name: 'Target',
    cell: entry => <Target entry={entry} />,
  },
  { name: 'Address', look: 'mono', cell: ({ address }) => address },
];
