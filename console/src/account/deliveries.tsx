import { Link } from 'wouter-preact';
import { type Delivery, useDeliveries, type Webhook } from '../service/account.ts';
import { Button } from '../ui/button.tsx';
import { CloseIcon } from '../ui/icons.tsx';
import { Problem } from '../ui/problem.tsx';
import { TableBox } from '../ui/table-box.tsx';
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
  <TableBox label="Deliveries">
    <table class="plain">
      <thead>
        <tr>
          <th scope="col">Job</th>
          <th scope="col">State</th>
          <th scope="col">Job ended</th>
          <th scope="col" class="numbers">
            Attempts
          </th>
          <th scope="col">Last answer</th>
          <th scope="col">Next attempt</th>
        </tr>
      </thead>
      <tbody>
        {deliveries.map(({ job, state, created, attempts, tried, next, status, problem }) => {
          const [tone, word] = STATES[state];
          return (
            <tr key={job}>
              <th scope="row" class="mono">
                <Link href={`/jobs/${job}`}>{job}</Link>
              </th>
              <td>
                <span class="badge" data-state={tone}>
                  {word}
                </span>
              </td>
              <td>
                <Time at={created} />
              </td>
              <td class="numbers">{attempts}</td>
              <td class="break">
                {status}
                {problem !== null && <span class="trouble"> {problem}</span>}
                {tried !== null && (
                  <span class="muted">
                    {' '}
                    <Ago at={tried} />
                  </span>
                )}
              </td>
              <td>{next === null ? <span class="muted">–</span> : <Time at={next} />}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  </TableBox>
);
