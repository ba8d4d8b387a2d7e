import type { TargetedSubmitEvent } from 'preact';
import { useState } from 'preact/hooks';
import { type HostKeys, usePinHost, useScan } from '../service/operations.ts';
import { Button } from '../ui/button.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { Problem } from '../ui/problem.tsx';
import { Fingerprints } from './fingerprints.tsx';
import { PlaceFields, readPlace } from './place-fields.tsx';

interface Place {
  name: string;
  address: string;
  port: number;
  private: boolean;
}

/** Adds a host in two steps: what a machine shows is compared by eye before it is pinned. */
export function PinDialog({ onClose }: { onClose: () => void }) {
  const scan = useScan();
  const [place, setPlace] = useState<Place>();
  const look = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    const at = readPlace(fields);
    setPlace({ ...at, name: String(fields.get('name') ?? '').trim() });
    scan.mutate(at);
  };
  return (
    <Dialog title="Add a host" onClose={onClose}>
      {place && scan.data ? (
        <Compare place={place} shown={scan.data} onBack={() => scan.reset()} onClose={onClose} />
      ) : (
        <form class="form" onSubmit={look}>
          <label class="field">
            <span>Name</span>
            <input
              class="input"
              name="name"
              required
              placeholder="lab"
              defaultValue={place?.name}
              autofocus
            />
            <small>What users call it here.</small>
          </label>
          <PlaceFields place={place} />
          {scan.error && <Problem error={scan.error} />}
          <div class="dialog-end">
            <Button onClick={onClose}>Cancel</Button>
            <Button type="submit" look="primary" disabled={scan.isPending}>
              {scan.isPending ? 'Asking for its keys …' : 'See its keys'}
            </Button>
          </div>
        </form>
      )}
    </Dialog>
  );
}

function Compare({
  place,
  shown,
  onBack,
  onClose,
}: {
  place: Place;
  shown: HostKeys;
  onBack: () => void;
  onClose: () => void;
}) {
  const pin = usePinHost();
  const { keys } = shown;
  return (
    <div class="form">
      <p>
        <strong>{place.address}</strong> shows these keys. Compare them with what you were told by
        its administrator, or with what this prints on the machine itself:
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
          onClick={() => pin.mutate({ ...place, keys }, { onSuccess: onClose })}
        >
          They are the same: pin them
        </Button>
      </div>
    </div>
  );
}
