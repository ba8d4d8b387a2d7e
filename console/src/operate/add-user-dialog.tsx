import type { TargetedSubmitEvent } from 'preact';
import { useAddUser } from '../service/operations.ts';
import { Button } from '../ui/button.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { Problem } from '../ui/problem.tsx';

export function AddUserDialog({ onClose }: { onClose: () => void }) {
  const add = useAddUser();
  const send = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    add.mutate(
      {
        username: String(fields.get('username')).trim(),
        password: String(fields.get('password')),
        administrator: fields.has('administrator'),
      },
      { onSuccess: onClose },
    );
  };
  return (
    <Dialog title="Add a user" onClose={onClose}>
      <form class="form" onSubmit={send} autocomplete="off">
        <label class="field">
          <span>User name</span>
          <input class="input" name="username" required maxLength={64} autofocus />
        </label>
        <label class="field">
          <span>First password</span>
          <input
            class="input"
            name="password"
            type="password"
            required
            minLength={8}
            autocomplete="new-password"
          />
          <small>At least 8 characters. The user can change it.</small>
        </label>
        <label class="check">
          <input type="checkbox" name="administrator" />
          <span>Administrator: sees workers, hosts, users and the audit</span>
        </label>
        {add.error && <Problem error={add.error} />}
        <div class="dialog-end">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" disabled={add.isPending}>
            Add the user
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
