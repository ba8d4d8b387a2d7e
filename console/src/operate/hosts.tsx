import { useState } from 'preact/hooks';
import { useHosts, useHostsInTable, useHostToChange } from '../service/hosts.ts';
import { type FullHost, isFull } from '../service/operations.ts';
import { itemsOf } from '../service/pages.ts';
import { Button } from '../ui/button.tsx';
import { Choice } from '../ui/choice.tsx';
import { PlusIcon } from '../ui/icons.tsx';
import { ListSection } from '../ui/list-section.tsx';
import { More } from '../ui/more.tsx';
import { type Column, Table } from '../ui/table.tsx';
import { Fingerprints } from './fingerprints.tsx';
import { HostDialog } from './host-dialog.tsx';
import { PinDialog } from './pin-dialog.tsx';

/** The machines that users may log in to, and the keys that are pinned for them. */
export function Hosts() {
  const list = useHostsInTable();
  const { data, error } = list;
  const present = itemsOf(data)?.filter(isFull);
  const [isAdding, setAdding] = useState(false);
  const [opened, open] = useState<string>();
  const changed = useHostToChange(opened).data;
  return (
    <>
      <ListSection
        title="Hosts"
        what="hosts"
        items={present}
        error={error}
        add={
          <div class="row">
            {list.hasNextPage && <FindHost onFound={open} />}
            <Button look="primary" onClick={() => setAdding(true)}>
              <PlusIcon />
              Add a host
            </Button>
          </div>
        }
        empty={{
          title: 'No hosts yet',
          words:
            'Users log in to the hosts that stand here, and to no others. Add the first one: you see its keys, compare them, and pin them.',
        }}
      >
        {hosts => (
          <>
            <HostTable hosts={hosts} onOpen={open} />
            <More list={list}>More hosts</More>
          </>
        )}
      </ListSection>
      {isAdding && <PinDialog onClose={() => setAdding(false)} />}
      {changed && isFull(changed) && <HostDialog host={changed} onClose={() => open(undefined)} />}
    </>
  );
}

/** One that is not in the table yet. */
function FindHost({ onFound }: { onFound: (name: string) => void }) {
  const list = useHosts();
  return (
    <Choice
      isBare
      label="Find a host"
      none="Find a host …"
      value=""
      options={itemsOf(list.data)?.map(({ name }) => [name, name] as const) ?? []}
      more={list}
      onChange={onFound}
    />
  );
}

const HostTable = ({ hosts, onOpen }: { hosts: FullHost[]; onOpen: (name: string) => void }) => (
  <Table
    label="Hosts"
    rows={hosts}
    keyOf={({ name }) => name}
    columns={COLUMNS}
    actions={({ name }) => (
      <Button size="small" aria-label={`Change ${name}`} onClick={() => onOpen(name)}>
        Change
      </Button>
    )}
  />
);

const COLUMNS: Column<FullHost>[] = [
  { name: 'Host', look: 'ellipsis', title: ({ name }) => name, cell: ({ name }) => name },
  {
    name: 'Address',
    look: 'mono',
    cell: host => (
      <>
        {host.address}:{host.port}
        {host.private && <span class="muted"> private</span>}
        {host.jump && <span class="muted"> through {host.jump}</span>}
      </>
    ),
  },
  { name: 'Pinned keys', cell: host => <Fingerprints {...host} /> },
  {
    name: 'For',
    cell: ({ users }) => (users === '*' ? 'Everyone' : users.join(', ') || 'Nobody'),
  },
];
