import { useState } from 'preact/hooks';
import { type UserRecord, useUsers } from '../service/operations.ts';
import type { CurrentUser } from '../service/user.ts';
import { Button } from '../ui/button.tsx';
import { formatBytes } from '../ui/format-bytes.ts';
import { PlusIcon } from '../ui/icons.tsx';
import { ListSection } from '../ui/list-section.tsx';
import { More } from '../ui/more.tsx';
import { TableBox } from '../ui/table-box.tsx';
import { Time } from '../ui/time.tsx';
import { AddUserDialog } from './add-user-dialog.tsx';
import { UserDialog } from './user-dialog.tsx';

/** Who may log in here, and as what. */
export function Users({ user }: { user: CurrentUser }) {
  const list = useUsers();
  const { data, error } = list;
  const [isAdding, setAdding] = useState(false);
  const [opened, open] = useState<string>();
  const users = data?.pages.flatMap(page => page.items);
  const changed = users?.find(({ username }) => username === opened);
  return (
    <>
      <ListSection
        title="Users"
        what="users"
        items={users}
        error={error}
        add={
          <Button look="primary" onClick={() => setAdding(true)}>
            <PlusIcon />
            Add a user
          </Button>
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

const UserTable = ({ users, onOpen }: { users: UserRecord[]; onOpen: (name: string) => void }) => (
  <TableBox label="Users">
    <table class="plain">
      <thead>
        <tr>
          <th scope="col">User</th>
          <th scope="col">Is</th>
          <th scope="col">Added</th>
          <th scope="col">Stores</th>
          <th scope="col">
            <span class="visually-hidden">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {users.map(({ username, administrator, disabled, created, storage }) => (
          <tr key={username}>
            <th scope="row" class="ellipsis" title={username}>
              {username}
            </th>
            <td>
              {disabled ? (
                <span class="badge" data-state="failed">
                  Disabled
                </span>
              ) : (
                <span>{administrator ? 'Administrator' : 'User'}</span>
              )}
            </td>
            <td>
              <Time at={created} />
            </td>
            <td>
              {formatBytes(storage.bytes)}
              {storage.limit > 0 && ` of ${formatBytes(storage.limit)}`}
            </td>
            <td class="actions">
              <Button size="small" onClick={() => onOpen(username)}>
                Change
              </Button>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </TableBox>
);
