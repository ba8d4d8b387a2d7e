import { useAddUser } from '../service/operations.ts';
import { Dialog } from '../ui/dialog.tsx';
import { DialogForm } from '../ui/dialog-form.tsx';

export function AddUserDialog({ onClose }: { onClose: () => void }) {
  const add = useAddUser();
  const send = (fields: FormData) => {
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
      <DialogForm
        action="Add the user"
        sending={add}
        onSend={send}
        onClose={onClose}
        autocomplete="off"
      >
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
      </DialogForm>
    </Dialog>
  );
}
