import { type FullHost, useChangeHost, useScan } from '../service/operations.ts';
import { Button } from '../ui/button.tsx';
import { Problem } from '../ui/problem.tsx';
import { Fingerprints } from './fingerprints.tsx';

/** The pinned keys of a host beside those that the machine shows now. */
export function HostKeys({ host }: { host: FullHost }) {
  const scan = useScan();
  const change = useChangeHost(host.name);
  const shown = scan.data;
  const { address, port } = host;
  const pin = (keys: string[]) =>
    change.mutate(
      { before: host, after: { keys: [...kept(host), ...keys] } },
      { onSuccess: () => scan.reset() },
    );
  return (
    <section class="form" aria-label="Keys">
      <h3>Pinned keys</h3>
      <Fingerprints keys={host.keys} fingerprints={host.fingerprints} />
      {shown && (
        <>
          <h3>What it shows now</h3>
          <Fingerprints {...shown} />
          <p role="status">{compare(host, shown.keys)}</p>
        </>
      )}
      {(scan.error ?? change.error) && <Problem error={scan.error ?? change.error} />}
      {host.jump === null ? (
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
              onClick={() => pin(shown.keys)}
            >
              Pin what it shows
            </Button>
          )}
        </div>
      ) : (
        <p class="muted">
          What it shows now is not seen from here: the way leads through {host.jump}, and takes a
          login there. Where its keys were changed, remove this host, and add it again with them.
        </p>
      )}
    </section>
  );
}

/** Authorities are no keys that a machine shows: what it shows replaces none of them. */
const kept = ({ keys }: FullHost): string[] => keys.filter(line => line.startsWith('@'));

function compare(host: FullHost, shown: string[]): string {
  if (shown.some(key => host.keys.includes(key))) return 'The machine still has a pinned key.';
  if (kept(host).length > 0)
    return 'None of them is pinned itself. An authority is: a login sees whether it has certified one of them.';
  return 'None of them is pinned: its keys were changed, or it is another machine. Compare before you pin.';
}
