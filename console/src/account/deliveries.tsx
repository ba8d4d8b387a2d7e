import { Link } from 'wouter-preact';
import { type Delivery, useDeliveries, type Webhook } from '../service/account.ts';
import { Button } from '../ui/button.tsx';
import { CloseIcon } from '../ui/icons.tsx';
import { Problem } from '../ui/problem.tsx';
import { type Column, Table } from '../ui/table.tsx';
import { Ago, Time } from '../ui/time.tsx';
import { Wait } from '../ui/wait.tsx';

const STATES: Record<Delivery['state'], [tone: string, word: string]> = {
  pending: ['queued', 'To be sent'],
  delivered: ['succeeded', 'Delivered'],
  failed: ['failed', 'Given up'],
};

/** What a webhook was sent, and is to be sent. */
export function Deliveries({ webhook, onClose }: { webhook: Webhook; onClose: () => void }) {
  const { data, error } = useDeliveries(webhook.id);
  return (
    <div class="card">
      <div class="card-head">
        <h3 class="grow break">Deliveries to {webhook.url}</h3>
        <Button look="quiet" size="icon" aria-label="Close the deliveries" onClick={onClose}>
          <CloseIcon />
        </Button>
      </div>
      {error && <Problem error={error} />}
      {!data && !error && <Wait>Asking what was sent …</Wait>}
      {data?.items.length === 0 && (
        <p class="none muted">Nothing yet: the next of your jobs that ends is sent.</p>
      )}
      {data && data.items.length > 0 && <DeliveryTable deliveries={data.items} />}
      {data?.next != null && <p class="none muted">Earlier ones are not shown.</p>}
    </div>
  );
}

const DeliveryTable = ({ deliveries }: { deliveries: Delivery[] }) => (
  <Table label="Deliveries" rows={deliveries} keyOf={({ job }) => job} columns={COLUMNS} />
);

const COLUMNS: Column<Delivery>[] = [
  { name: 'Job', look: 'mono', cell: ({ job }) => <Link href={`/jobs/${job}`}>{job}</Link> },
  { name: 'State', cell: ({ state }) => <DeliveryState state={state} /> },
  { name: 'Job ended', cell: ({ created }) => <Time at={created} /> },
  { name: 'Attempts', look: 'numbers', cell: ({ attempts }) => attempts },
  {
    name: 'Last answer',
    look: 'break',
    cell: ({ status, problem, tried }) => (
      <>
        {status}
        {problem !== null && <span class="trouble"> {problem}</span>}
        {tried !== null && (
          <span class="muted">
            {' '}
            <Ago at={tried} />
          </span>
        )}
      </>
    ),
  },
  {
    name: 'Next attempt',
    cell: ({ next }) => (next === null ? <span class="muted">–</span> : <Time at={next} />),
  },
];

function DeliveryState({ state }: Pick<Delivery, 'state'>) {
  const [tone, word] = STATES[state];
  return (
    <span class="badge" data-state={tone}>
      {word}
    </span>
  );
}
