import { useState } from 'preact/hooks';
import { type FullHost, useFullHosts } from '../service/operations.ts';
import { Button } from '../ui/button.tsx';
import { PlusIcon } from '../ui/icons.tsx';
import { ListSection } from '../ui/list-section.tsx';
import { TableBox } from '../ui/table-box.tsx';
import { Fingerprints } from './fingerprints.tsx';
import { HostDialog } from './host-dialog.tsx';
import { PinDialog } from './pin-dialog.tsx';

/** The machines that users may log in to, and the keys that are pinned for them. */
export function Hosts() {
  const { data, error } = useFullHosts();
  const [isAdding, setAdding] = useState(false);
  const [opened, open] = useState<string>();
  const changed = data?.find(({ name }) => name === opened);
  return (
    <>
      <ListSection
        title="Hosts"
        what="hosts"
        items={data}
        error={error}
        add={
          <Button look="primary" onClick={() => setAdding(true)}>
            <PlusIcon />
            Add a host
          </Button>
        }
        empty={{
          title: 'No hosts yet',
          words:
            'Users log in to the hosts that stand here, and to no others. Add the first one: you see its keys, compare them, and pin them.',
        }}
      >
        {hosts => <HostTable hosts={hosts} onOpen={open} />}
      </ListSection>
      {isAdding && <PinDialog hosts={data ?? []} onClose={() => setAdding(false)} />}
      {data && changed && (
        <HostDialog host={changed} hosts={data} onClose={() => open(undefined)} />
      )}
    </>
  );
}

const HostTable = ({ hosts, onOpen }: { hosts: FullHost[]; onOpen: (name: string) => void }) => (
  <TableBox label="Hosts">
    <table class="plain">
      <thead>
        <tr>
          <th scope="col">Host</th>
          <th scope="col">Address</th>
          <th scope="col">Pinned keys</th>
          <th scope="col">For</th>
          <th scope="col">
            <span class="visually-hidden">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {hosts.map(host => (
          <tr key={host.name}>
            <th scope="row" class="ellipsis" title={host.name}>
              {host.name}
            </th>
            <td class="mono">
              {host.address}:{host.port}
              {host.private && <span class="muted"> private</span>}
              {host.jump && <span class="muted"> through {host.jump}</span>}
            </td>
            <td>
              <Fingerprints {...host} />
            </td>
            <td>{host.users === '*' ? 'Everyone' : host.users.join(', ') || 'Nobody'}</td>
            <td class="actions">
              <Button size="small" onClick={() => onOpen(host.name)}>
                Change
              </Button>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </TableBox>
);
