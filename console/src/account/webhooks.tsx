import { useState } from 'preact/hooks';
import { useRemoveWebhook, useWebhooks, type Webhook } from '../service/account.ts';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/confirm-dialog.tsx';
import { PlusIcon } from '../ui/icons.tsx';
import { ListSection } from '../ui/list-section.tsx';
import { type Column, Table } from '../ui/table.tsx';
import { Ago, Time } from '../ui/time.tsx';
import { useAddress } from '../ui/use-address.ts';
import { Deliveries } from './deliveries.tsx';
import { NewWebhookDialog } from './new-webhook-dialog.tsx';

/** Where the ends of the user's jobs are sent to. The one whose deliveries are looked at stands in the address. */
export function Webhooks() {
  const { data, error } = useWebhooks();
  const [search, change] = useAddress();
  const [isMaking, setMaking] = useState(false);
  const [removed, setRemoved] = useState<Webhook>();
  const looked = data?.find(({ id }) => id === search.get('webhook'));
  const add = (
    <Button look="primary" onClick={() => setMaking(true)}>
      <PlusIcon />
      New webhook
    </Button>
  );
  return (
    <>
      <ListSection
        title="Webhooks"
        what="your webhooks"
        items={data}
        error={error}
        add={add}
        empty={{
          title: 'No webhook yet',
          words:
            'A webhook tells a server of yours when a job of yours has ended, so that nothing has to ask for it again and again.',
        }}
      >
        {webhooks => (
          <WebhookTable
            webhooks={webhooks}
            looked={looked}
            onLook={id => change({ webhook: id })}
            onRemove={setRemoved}
          />
        )}
      </ListSection>
      {looked && (
        <Deliveries key={looked.id} webhook={looked} onClose={() => change({ webhook: '' })} />
      )}
      {isMaking && <NewWebhookDialog onClose={() => setMaking(false)} />}
      {removed && <RemoveWebhook webhook={removed} onClose={() => setRemoved(undefined)} />}
    </>
  );
}

interface WebhookTableProps {
  webhooks: Webhook[];
  looked: Webhook | undefined;
  onLook: (id: string) => void;
  onRemove: (webhook: Webhook) => void;
}

const WebhookTable = ({ webhooks, looked, onLook, onRemove }: WebhookTableProps) => (
  <Table
    label="Webhooks"
    rows={webhooks}
    keyOf={({ id }) => id}
    isChosen={webhook => webhook === looked}
    columns={COLUMNS}
    actions={webhook => (
      <>
        <Button
          size="small"
          aria-label={`Deliveries to ${webhook.url}`}
          onClick={() => onLook(webhook.id)}
        >
          Deliveries
        </Button>{' '}
        <Button size="small" aria-label={`Remove ${webhook.url}`} onClick={() => onRemove(webhook)}>
          Remove
        </Button>
      </>
    )}
  />
);

const COLUMNS: Column<Webhook>[] = [
  { name: 'Address', look: 'ellipsis', title: ({ url }) => url, cell: ({ url }) => url },
  { name: 'Is sent', cell: webhook => describe(webhook) },
  { name: 'State', cell: webhook => <WebhookState webhook={webhook} /> },
  { name: 'Made', cell: ({ created }) => <Time at={created} /> },
];

const describe = ({ kinds, states }: Webhook) =>
  `${kinds === null ? 'all jobs' : kinds.join(', ')}${states === null ? '' : ` that ${states.join(' or ')}`}`;

function WebhookState({ webhook: { disabled, failing, problem } }: { webhook: Webhook }) {
  if (disabled === null && failing === null)
    return (
      <span class="badge" data-state="succeeded">
        Works
      </span>
    );
  return (
    <>
      <span class="badge" data-state={disabled === null ? 'queued' : 'failed'}>
        {disabled === null ? 'Fails' : 'Disabled'}
      </span>{' '}
      <span class="muted">
        since <Ago at={disabled ?? failing ?? ''} />
      </span>
      {problem !== null && <span class="below break trouble">{problem}</span>}
      {disabled !== null && (
        <span class="below muted">Make a new one when your server works again.</span>
      )}
    </>
  );
}

function RemoveWebhook({ webhook, onClose }: { webhook: Webhook; onClose: () => void }) {
  const remove = useRemoveWebhook();
  return (
    <ConfirmDialog
      title="Remove the webhook?"
      action="Remove the webhook"
      isPending={remove.isPending}
      error={remove.error}
      onConfirm={() => remove.mutate(webhook.id, { onSuccess: onClose })}
      onClose={onClose}
    >
      <p>
        <span class="break">{webhook.url}</span> is sent nothing any more, also not what it has not
        taken yet.
      </p>
    </ConfirmDialog>
  );
}
