import { useAddHost } from '../service/hosts.ts';
import { Dialog } from '../ui/dialog.tsx';
import { DialogForm } from '../ui/dialog-form.tsx';

/** For administrators: a machine that users may log in to. The key that it shows now is pinned. */
export function AddHostDialog({ onClose }: { onClose: () => void }) {
  const add = useAddHost();
  const send = (fields: FormData) => {
    const text = (name: string) => String(fields.get(name) ?? '').trim();
    add.mutate(
      {
        name: text('name'),
        address: text('address') || undefined,
        port: Number(text('port')) || undefined,
        private: fields.has('private'),
        trust: 'now',
      },
      { onSuccess: onClose },
    );
  };
  return (
    <Dialog title="Add a host" onClose={onClose}>
      <DialogForm
        action={add.isPending ? 'Asking for its key …' : 'Add the host'}
        sending={add}
        onSend={send}
        onClose={onClose}
      >
        <label class="field">
          <span>Name</span>
          <input class="input" name="name" required placeholder="lab" autofocus />
          <small>What users call it here.</small>
        </label>
        <div class="two">
          <label class="field">
            <span>Address</span>
            <input class="input" name="address" required placeholder="lab.example.org" />
          </label>
          <label class="field">
            <span>Port</span>
            <input class="input" name="port" type="number" min="1" max="65535" value="22" />
          </label>
        </div>
        <label class="check">
          <input type="checkbox" name="private" />
          <span>Its address is in a private network, or this machine</span>
        </label>
        <p class="muted">
          Windlass connects once and remembers the key that it is shown. From then on it sends
          nothing to a machine with another key.
        </p>
      </DialogForm>
    </Dialog>
  );
}
