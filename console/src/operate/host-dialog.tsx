import type { TargetedSubmitEvent } from 'preact';
import { useState } from 'preact/hooks';
import { type FullHost, useChangeHost, useRemoveHost, useScan } from '../service/operations.ts';
import { Button } from '../ui/button.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { Problem } from '../ui/problem.tsx';
import { Fingerprints } from './fingerprints.tsx';

/** Who may use a host; whether its keys are still the pinned ones; its removal. */
export function HostDialog({ host, onClose }: { host: FullHost; onClose: () => void }) {
  const change = useChangeHost(host.name);
  const remove = useRemoveHost(host.name);
  const [isRemoving, setRemoving] = useState(false);
  const send = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    const names = String(fields.get('users') ?? '').split(/[\s,]+/);
    const users = names.filter(name => name !== '');
    const isForAll = fields.get('for') === 'all';
    change.mutate(
      { users: isForAll ? '*' : users, agent: fields.has('agent') },
      { onSuccess: onClose },
    );
  };
  const isForAll = host.users === '*';
  return (
    <Dialog title={host.name} onClose={onClose}>
      <form class="form" onSubmit={send}>
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
        </fieldset>
        <label class="check">
          <input type="checkbox" name="agent" defaultChecked={host.agent} />
          <span>Commands run by the agent, so that they outlast lost connections</span>
        </label>
        {change.error && <Problem error={change.error} />}
        <div class="dialog-end">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" disabled={change.isPending}>
            Save
          </Button>
        </div>
      </form>
      <Keys host={host} />
      <section class="form danger-zone" aria-label="Remove">
        {remove.error && <Problem error={remove.error} />}
        {isRemoving ? (
          <div class="row">
            <span>Nobody can log in to {host.name} any more. Really?</span>
            <Button
              look="danger"
              size="small"
              disabled={remove.isPending}
              onClick={() => remove.mutate(undefined, { onSuccess: onClose })}
            >
              Remove {host.name}
            </Button>
            <Button size="small" onClick={() => setRemoving(false)}>
              Keep it
            </Button>
          </div>
        ) : (
          <Button look="danger" size="small" onClick={() => setRemoving(true)}>
            Remove this host …
          </Button>
        )}
      </section>
    </Dialog>
  );
}

/** The pinned keys beside those that the machine shows now. */
function Keys({ host }: { host: FullHost }) {
  const scan = useScan();
  const change = useChangeHost(host.name);
  const shown = scan.data;
  const isSame = shown?.keys.some(key => host.keys.includes(key));
  const { address, port } = host;
  return (
    <section class="form" aria-label="Keys">
      <h3>Pinned keys</h3>
      <Fingerprints keys={host.keys} fingerprints={host.fingerprints} />
      {shown && (
        <>
          <h3>What it shows now</h3>
          <Fingerprints {...shown} />
          <p role="status">
            {isSame
              ? 'The machine still has a pinned key.'
              : 'None of them is pinned: its keys were changed, or it is another machine. Compare before you pin.'}
          </p>
        </>
      )}
      {(scan.error ?? change.error) && <Problem error={scan.error ?? change.error} />}
      <div class="row">
        <Button
          size="small"
          disabled={scan.isPending}
          onClick={() => scan.mutate({ address, port, private: host.private })}
        >
          {scan.isPending ? 'Asking for its keys …' : 'See what it shows now'}
        </Button>
        {shown && (
          <Button
            size="small"
            disabled={change.isPending}
            title="Open sessions on this host end where a key was changed"
            onClick={() => change.mutate({ keys: shown.keys }, { onSuccess: () => scan.reset() })}
          >
            Pin what it shows
          </Button>
        )}
      </div>
    </section>
  );
}
