import type { TargetedSubmitEvent } from 'preact';
import { useAddHost } from '../service/hosts.ts';
import { Button } from '../ui/button.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { Problem } from '../ui/problem.tsx';

/** For administrators: a machine that users may log in to. The key that it shows now is pinned. */
export function AddHostDialog({ onClose }: { onClose: () => void }) {
  const add = useAddHost();
  const send = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
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
      <form class="form" onSubmit={send}>
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
        {add.error && <Problem error={add.error} />}
        <div class="dialog-end">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" disabled={add.isPending}>
            {add.isPending ? 'Asking for its key …' : 'Add the host'}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
