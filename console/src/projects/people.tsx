import type { TargetedSubmitEvent } from 'preact';
import { useState } from 'preact/hooks';
import { type Project, type Role, useChangePeople } from '../service/projects.ts';
import type { CurrentUser } from '../service/user.ts';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/confirm-dialog.tsx';
import { Problem } from '../ui/problem.tsx';
import { Table } from '../ui/table.tsx';
import { type Member, membersOf, ROLE_NAMES, ROLES, withRole } from './roles.ts';

interface PeopleProps {
  project: Project;
  tag: string;
  user: CurrentUser;
}

/** Who has a part in a project, and which. */
export function People({ project, tag, user }: PeopleProps) {
  const change = useChangePeople(project.id, tag);
  const isAdministrator = project.role === 'administrator';
  const store = (name: string, role: Role | undefined, onSuccess?: () => void) =>
    change.mutate(withRole(project.acl, name, role), { onSuccess });
  const canChange = isAdministrator && !change.isPending;
  const isSelf = (name: string) => name === user.username;
  const [asked, ask] = useState<Role>();
  const give = (name: string, role: Role, onSuccess?: () => void) => {
    // A single key changes it, and one cannot give oneself the administration again.
    if (isSelf(name) && role !== 'administrator') {
      // What was refused before is no answer to this question.
      change.reset();
      ask(role);
    } else store(name, role, onSuccess);
  };
  const done = () => ask(undefined);
  return (
    <>
      <h2>People</h2>
      {change.error && <Problem error={change.error} />}
      <div class="card">
        <Table
          label="People"
          rows={membersOf(project.acl)}
          keyOf={member => member.user}
          columns={[
            {
              name: 'User',
              look: 'ellipsis',
              title: member => member.user,
              cell: member => (
                <>
                  {member.user}
                  {isSelf(member.user) && <span class="muted"> (you)</span>}
                </>
              ),
            },
            {
              name: 'Role',
              cell: member =>
                canChange ? (
                  <RoleField member={member} onGive={role => give(member.user, role)} />
                ) : (
                  ROLES[member.role].name
                ),
            },
          ]}
          actions={member =>
            canChange &&
            !isSelf(member.user) && (
              <Button
                size="small"
                aria-label={`Remove ${member.user}`}
                onClick={() => store(member.user, undefined)}
              >
                Remove
              </Button>
            )
          }
        />
        {isAdministrator && <AddPerson isPending={change.isPending} onAdd={give} />}
      </div>
      {asked && (
        <ConfirmDialog
          title="Give up the administration?"
          action={`Become a ${ROLES[asked].name.toLowerCase()}`}
          isPending={change.isPending}
          error={change.error}
          onConfirm={() => store(user.username, asked, done)}
          onClose={done}
        >
          <p>
            As a {ROLES[asked].name.toLowerCase()} you cannot give it to yourself again: another
            administrator of the project has to.
          </p>
        </ConfirmDialog>
      )}
      <dl class="roles">
        {ROLE_NAMES.map(role => (
          <div key={role}>
            <dt>{ROLES[role].name}</dt>
            <dd class="muted">{ROLES[role].may}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}

interface RoleFieldProps {
  member: Member;
  onGive: (role: Role) => void;
}

const RoleField = ({ member: { user, role }, onGive }: RoleFieldProps) => (
  <select
    class="input short"
    aria-label={`Role of ${user}`}
    value={role}
    onChange={event => onGive(event.currentTarget.value as Role)}
  >
    {ROLE_NAMES.map(each => (
      <option key={each} value={each}>
        {ROLES[each].name}
      </option>
    ))}
  </select>
);

interface AddPersonProps {
  isPending: boolean;
  onAdd: (user: string, role: Role, onSuccess: () => void) => void;
}

function AddPerson({ isPending, onAdd }: AddPersonProps) {
  const add = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const fields = new FormData(form);
    const user = String(fields.get('user')).trim();
    onAdd(user, fields.get('role') as Role, () => form.reset());
  };
  return (
    <form class="add-line" onSubmit={add} aria-label="Add somebody" autocomplete="off">
      <label class="field">
        <span>User name</span>
        <input class="input" name="user" required maxLength={64} />
      </label>
      <label class="field">
        <span>Role</span>
        <select class="input" name="role" defaultValue="reader">
          {ROLE_NAMES.map(role => (
            <option key={role} value={role}>
              {ROLES[role].name}
            </option>
          ))}
        </select>
      </label>
      <Button type="submit" disabled={isPending}>
        Add
      </Button>
    </form>
  );
}
