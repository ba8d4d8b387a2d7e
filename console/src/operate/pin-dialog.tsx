import { useState } from 'preact/hooks';
import { type HostKeys, usePinHost, useScan } from '../service/operations.ts';
import { Button } from '../ui/button.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { DialogForm } from '../ui/dialog-form.tsx';
import { Problem } from '../ui/problem.tsx';
import { EndpointFields, readEndpoint } from './endpoint-fields.tsx';
import { Fingerprints } from './fingerprints.tsx';
import { JumpField } from './jump-field.tsx';

interface NamedEndpoint {
  name: string;
  address: string;
  port: number;
  private: boolean;
}

/**
 * Adds a host in two steps: a person compares what the machine shows before it is pinned. The keys of a host behind a
 * jump host are typed in: only a login there could show them.
 */
export function PinDialog({ onClose }: { onClose: () => void }) {
  const scan = useScan();
  const pin = usePinHost();
  const [jump, setJump] = useState<string | null>(null);
  const [endpoint, setEndpoint] = useState<NamedEndpoint>();
  const look = (fields: FormData) => {
    const at = readEndpoint(fields);
    const name = String(fields.get('name') ?? '').trim();
    if (jump !== null)
      return pin.mutate({ ...at, name, jump, keys: readLines(fields) }, { onSuccess: onClose });
    setEndpoint({ ...at, name });
    scan.mutate(at);
  };
  return (
    <Dialog title="Add a host" onClose={onClose}>
      {endpoint && scan.data ? (
        <Compare
          endpoint={endpoint}
          shown={scan.data}
          onBack={() => scan.reset()}
          onClose={onClose}
        />
      ) : (
        <DialogForm
          action={labelOf(scan.isPending, jump)}
          sending={{
            error: scan.error ?? pin.error,
            isPending: scan.isPending || pin.isPending,
          }}
          onSend={look}
          onClose={onClose}
        >
          <label class="field">
            <span>Name</span>
            <input
              class="input"
              name="name"
              required
              placeholder="lab"
              defaultValue={endpoint?.name}
              autofocus
            />
            <small>What users call it here.</small>
          </label>
          <EndpointFields endpoint={endpoint} />
          <JumpField jump={jump} onJump={setJump} />
          {jump !== null && (
            <label class="field">
              <span>Its keys, one a line</span>
              <textarea
                class="input mono"
                name="keys"
                rows={3}
                required
                placeholder="ssh-ed25519 AAAA…"
              />
              <small>
                The machine has them in /etc/ssh/ssh_host_…_key.pub. Or its authority, as in
                known_hosts: @cert-authority *.example.org ssh-ed25519 AAAA…
              </small>
            </label>
          )}
        </DialogForm>
      )}
    </Dialog>
  );
}

function labelOf(isAsking: boolean, jump: string | null): string {
  if (isAsking) return 'Asking for its keys …';
  return jump === null ? 'See its keys' : 'Add the host';
}

const readLines = (fields: FormData): string[] =>
  String(fields.get('keys') ?? '')
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '');

function Compare({
  endpoint,
  shown,
  onBack,
  onClose,
}: {
  endpoint: NamedEndpoint;
  shown: HostKeys;
  onBack: () => void;
  onClose: () => void;
}) {
  const pin = usePinHost();
  const { keys } = shown;
  return (
    <div class="form">
      <h3 tabIndex={-1} autofocus>
        Compare its keys
      </h3>
      <p role="status">
        <strong>{endpoint.address}</strong> shows these keys. Compare them with what you were told
        by its administrator, or with what this prints on the machine itself:
      </p>
      <pre class="plain-pre">ls /etc/ssh/*.pub | xargs -n1 ssh-keygen -lf</pre>
      <Fingerprints {...shown} />
      <p class="muted">
        From then on Windlass sends nothing to a machine that shows none of these keys.
      </p>
      {pin.error && <Problem error={pin.error} />}
      <div class="dialog-end">
        <Button onClick={onBack}>Back</Button>
        <Button
          look="primary"
          disabled={pin.isPending}
          onClick={() => pin.mutate({ ...endpoint, keys }, { onSuccess: onClose })}
        >
          They are the same: pin them
        </Button>
      </div>
    </div>
  );
}
