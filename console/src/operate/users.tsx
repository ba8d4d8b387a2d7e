import { useState } from 'preact/hooks';
import { type UserRecord, useOneUser, useUsersInTable } from '../service/operations.ts';
import { itemsOf } from '../service/pages.ts';
import { type CurrentUser, useUsers } from '../service/user.ts';
import { Button } from '../ui/button.tsx';
import { Choice } from '../ui/choice.tsx';
import { formatBytes } from '../ui/format-bytes.ts';
import { PlusIcon } from '../ui/icons.tsx';
import { ListSection } from '../ui/list-section.tsx';
import { More } from '../ui/more.tsx';
import { type Column, Table } from '../ui/table.tsx';
import { Time } from '../ui/time.tsx';
import { AddUserDialog } from './add-user-dialog.tsx';
import { UserDialog } from './user-dialog.tsx';

/** Who may log in here, and as what. */
export function Users({ user }: { user: CurrentUser }) {
  const list = useUsersInTable();
  const { data, error } = list;
  const [isAdding, setAdding] = useState(false);
  const [opened, open] = useState<string>();
  const users = itemsOf(data);
  const changed = useOneUser(opened).data;
  return (
    <>
      <ListSection
        title="Users"
        what="users"
        items={users}
        error={error}
        add={
          <div class="row">
            {list.hasNextPage && <FindUser onFound={open} />}
            <Button look="primary" onClick={() => setAdding(true)}>
              <PlusIcon />
              Add a user
            </Button>
          </div>
        }
      >
        {present => (
          <>
            <UserTable users={present} onOpen={open} />
            <More list={list}>More users</More>
          </>
        )}
      </ListSection>
      {isAdding && <AddUserDialog onClose={() => setAdding(false)} />}
      {changed && (
        <UserDialog
          user={changed}
          isSelf={changed.username === user.username}
          onClose={() => open(undefined)}
        />
      )}
    </>
  );
}

/** One that is not in the table yet. */
function FindUser({ onFound }: { onFound: (username: string) => void }) {
  const list = useUsers();
  return (
    <Choice
      isBare
      label="Find a user"
      none="Find a user …"
      value=""
      options={itemsOf(list.data)?.map(({ username }) => [username, username] as const) ?? []}
      more={list}
      onChange={onFound}
    />
  );
}

const UserTable = ({ users, onOpen }: { users: UserRecord[]; onOpen: (name: string) => void }) => (
  <Table
    label="Users"
    rows={users}
    keyOf={({ username }) => username}
    columns={COLUMNS}
    actions={({ username }) => (
      <Button size="small" aria-label={`Change ${username}`} onClick={() => onOpen(username)}>
        Change
      </Button>
    )}
  />
);

const COLUMNS: Column<UserRecord>[] = [
  {
    name: 'User',
    look: 'ellipsis',
    title: ({ username }) => username,
    cell: ({ username }) => username,
  },
  {
    name: 'Is',
    cell: ({ disabled, administrator }) =>
      disabled ? (
        <span class="badge" data-state="failed">
          Disabled
        </span>
      ) : (
        <span>{administrator ? 'Administrator' : 'User'}</span>
      ),
  },
  { name: 'Added', cell: ({ created }) => <Time at={created} /> },
  {
    name: 'Stores',
    cell: ({ storage: { bytes, limit } }) =>
      `${formatBytes(bytes)}${limit > 0 ? ` of ${formatBytes(limit)}` : ''}`,
  },
];
