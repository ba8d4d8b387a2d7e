import { useEffect } from 'preact/hooks';
import { useConnection } from '../service/connection.ts';
import { askAgain, mayPass, useOld } from '../service/failures.ts';
import { useNow } from './time.tsx';

const AGAIN_MS = 10_000;

/**
 * Tells of a connection that is lost, and of its return, and of what may be old for other reasons. Work on the service goes on
 * meanwhile.
 */
export function Connection() {
  const connection = useConnection();
  const old = useOld();
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') void askAgain();
    }, AGAIN_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <div role="status">
      {old && connection.state !== 'lost' && (
        <p class="connection">
          <span>
            What is shown may be old. {old.message}
            {mayPass(old) && ' It is asked for again.'}
          </span>
        </p>
      )}
      {connection.state !== 'connected' && !(old && connection.state === 'back') && (
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
