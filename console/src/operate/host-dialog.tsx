import type { TargetedInputEvent } from 'preact';
import { useState } from 'preact/hooks';
import {
  type FullHost,
  type HostMembers,
  useChangeHost,
  useRemoveHost,
} from '../service/operations.ts';
import { Button } from '../ui/button.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { DialogForm } from '../ui/dialog-form.tsx';
import { Problem } from '../ui/problem.tsx';
import { EndpointFields, readEndpoint } from './endpoint-fields.tsx';
import { HostKeys } from './host-keys.tsx';
import { JumpField } from './jump-field.tsx';

interface HostDialogProps {
  /** Changes are held against it as it was when the dialog was opened, whatever is read later. */
  host: FullHost;
  onClose: () => void;
}

/** Where a host is and who may use it; whether its keys are still the pinned ones; its removal. */
export function HostDialog({ host: present, onClose }: HostDialogProps) {
  const [host] = useState(present);
  const change = useChangeHost(host.name);
  const [jump, setJump] = useState(host.jump);
  const [isElsewhere, setElsewhere] = useState(false);
  const isMoved = isElsewhere || jump !== host.jump;
  const look = (event: TargetedInputEvent<HTMLFormElement>) => {
    const fields = new FormData(event.currentTarget);
    const { address, port } = readEndpoint(fields);
    setElsewhere(address !== host.address || port !== host.port);
  };
  const send = (fields: FormData) => {
    const after = { ...readMembers(fields), jump };
    change.mutate({ before: host, after }, { onSuccess: onClose });
  };
  const isForAll = host.users === '*';
  return (
    <Dialog title={host.name} onClose={onClose}>
      <DialogForm action="Save" sending={change} onSend={send} onClose={onClose} onInput={look}>
        <EndpointFields endpoint={host} />
        <JumpField host={host.name} jump={jump} onJump={setJump} />
        {isMoved && (
          <p class="notice" role="status">
            Sessions that are open on {host.name} end, as do those on hosts behind it, and what runs
            in them is no longer followed. The machine there must show a pinned key.
          </p>
        )}
        <fieldset class="field">
          <legend class="legend">Who may open sessions there</legend>
          <label class="check">
            <input type="radio" name="for" value="all" defaultChecked={isForAll} />
            <span>Everyone who has a login here</span>
          </label>
          <label class="check">
            <input type="radio" name="for" value="some" defaultChecked={!isForAll} />
            <span>These users</span>
          </label>
          <textarea
            class="input"
            name="users"
            rows={2}
            aria-label="User names"
            placeholder="ada, grace"
            defaultValue={host.users === '*' ? '' : host.users.join(', ')}
          />
          <p class="muted">
            Others lose the sessions that they have there, with what runs in them.
          </p>
        </fieldset>
        <label class="check">
          <input type="checkbox" name="agent" defaultChecked={host.agent} />
          <span>Commands run by the agent, so that they outlast lost connections</span>
        </label>
      </DialogForm>
      <HostKeys host={present} />
      <Remove name={host.name} onRemoved={onClose} />
    </Dialog>
  );
}

function readMembers(fields: FormData): Partial<HostMembers> {
  const names = String(fields.get('users') ?? '').split(/[\s,]+/);
  return {
    ...readEndpoint(fields),
    users: fields.get('for') === 'all' ? '*' : names.filter(name => name !== ''),
    agent: fields.has('agent'),
  };
}

function Remove({ name, onRemoved }: { name: string; onRemoved: () => void }) {
  const remove = useRemoveHost(name);
  const [isRemoving, setRemoving] = useState(false);
  return (
    <section class="form danger-zone" aria-label="Remove">
      {remove.error && <Problem error={remove.error} />}
      <div class="row">
        {isRemoving ? (
          <>
            <span>Nobody can log in to {name} any more. Really?</span>
            <Button
              look="danger"
              size="small"
              disabled={remove.isPending}
              onClick={() => remove.mutate(undefined, { onSuccess: onRemoved })}
            >
              Remove {name}
            </Button>
            <Button size="small" onClick={() => setRemoving(false)}>
              Keep it
            </Button>
          </>
        ) : (
          <Button look="danger" size="small" onClick={() => setRemoving(true)}>
            Remove this host …
          </Button>
        )}
      </div>
    </section>
  );
}
