import { useConnection } from '../service/connection.ts';
import { useNow } from './time.tsx';

/** Tells of a connection that is lost, and of its return. Work on the service goes on meanwhile. */
export function Connection() {
  const connection = useConnection();
  return (
    <div role="status">
      {connection.state !== 'connected' && (
        <p class="connection" data-state={connection.state}>
          {connection.state === 'back' ? (
            'Connected again. Nothing was missed.'
          ) : (
            <Lost retryAt={connection.retryAt ?? 0} />
          )}
        </p>
      )}
    </div>
  );
}

function Lost({ retryAt }: { retryAt: number }) {
  const now = useNow(500);
  const seconds = Math.ceil((retryAt - now) / 1_000);
  return (
    <>
      <span class="spin" aria-hidden="true" />
      <span>
        The service does not answer. Jobs go on.{' '}
        <span aria-hidden="true">
          {seconds > 0 ? `Trying again in ${seconds} s` : 'Trying again …'}
        </span>
      </span>
    </>
  );
}
