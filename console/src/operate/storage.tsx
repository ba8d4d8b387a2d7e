import { type UserRecord, useAllUsers } from '../service/operations.ts';
import { formatBytes } from '../ui/format-bytes.ts';
import { formatCount } from '../ui/numbers.ts';
import { Problem } from '../ui/problem.tsx';
import { Table } from '../ui/table.tsx';
import { Wait } from '../ui/wait.tsx';

/** Those that store the most are shown. */
const SHOWN = 200;

/** Who stores how much, the most first. */
export function Storage() {
  const { data, error } = useAllUsers();
  const users = data?.toSorted((a, b) => b.storage.bytes - a.storage.bytes);
  const total = users?.reduce((sum, { storage }) => sum + storage.bytes, 0) ?? 0;
  const limit = users?.[0]?.storage.limit ?? 0;
  return (
    <>
      <div class="page-head">
        <h2>Storage by user</h2>
        {users && <strong>{formatBytes(total)} in all</strong>}
      </div>
      {error && <Problem error={error} />}
      {!users && !error && <Wait>Asking for what users store …</Wait>}
      {users && <StorageTable users={users.slice(0, SHOWN)} total={total} />}
      {users && users.length > SHOWN && (
        <p class="muted">{formatCount(users.length - SHOWN)} more users store less than these.</p>
      )}
      <p class="muted">
        Results and outputs of jobs, artifacts, uploads, cached videos and bookmarks, in all
        projects, for who stored them.{' '}
        {limit > 0
          ? `Each may store ${formatBytes(limit)}: LIMIT_USER_BYTES.`
          : 'Nobody has a limit: LIMIT_USER_BYTES sets one.'}
      </p>
    </>
  );
}

const StorageTable = ({ users, total }: { users: UserRecord[]; total: number }) => (
  <div class="card">
    <Table
      label="Storage by user"
      rows={users}
      keyOf={({ username }) => username}
      columns={[
        {
          name: 'User',
          look: 'ellipsis',
          title: ({ username }) => username,
          cell: ({ username }) => username,
        },
        { name: 'Stores', look: 'numbers', cell: ({ storage }) => formatBytes(storage.bytes) },
        {
          name: 'Of all',
          cell: ({ username, storage }) => (
            <Part part={storage.bytes / Math.max(1, total)} of={`${username}, of all`} />
          ),
        },
        {
          name: 'Of the limit',
          cell: ({ username, storage: { bytes, limit } }) =>
            limit > 0 ? (
              <Part part={bytes / limit} of={`${username}, of the limit`} />
            ) : (
              <span class="muted">No limit</span>
            ),
        },
      ]}
    />
  </div>
);

const Part = ({ part, of }: { part: number; of: string }) => {
  const percent = `${formatCount(100 * part)} %`;
  return (
    <span class="part">
      <meter min="0" max="1" value={Math.min(1, part)} aria-label={of} title={percent} />
      <span class="numbers muted">{percent}</span>
    </span>
  );
};
