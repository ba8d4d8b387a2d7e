import type { ComponentChildren } from 'preact';
import { useCallback, useEffect, useErrorBoundary, useRef } from 'preact/hooks';
import { useLocation } from 'wouter-preact';
import { useSearch } from 'wouter-preact/use-browser-location';
import { queries } from '../service/client.ts';
import { Button } from './button.tsx';
import { useTitle } from './use-title.ts';

/**
 * When a page throws while it is drawn, what surrounds it stays, and the error and a way on are shown. Another address
 * is drawn anew.
 */
export function PageBoundary({ children }: { children: ComponentChildren }) {
  const [error, reset] = useErrorBoundary(thrown => console.error(thrown));
  const [path] = useLocation();
  const search = useSearch();
  const failed = useRef('');
  const address = `${path}?${search}`;
  if (error === undefined) failed.current = address;
  const isElsewhere = failed.current !== address;
  const draw = useCallback(() => {
    // An answer that cannot be drawn would be drawn again before it is asked for anew.
    queries.removeQueries({ type: 'inactive' });
    reset();
  }, [reset]);
  useEffect(() => {
    if (error !== undefined && isElsewhere) draw();
  }, [error, isElsewhere, draw]);
  if (error === undefined) return children;
  return <Broken error={error} onAgain={draw} />;
}

function Broken({ error, onAgain }: { error: unknown; onAgain: () => void }) {
  useTitle('Something went wrong');
  return (
    <>
      <h1>This page cannot be shown</h1>
      <div class="notice" data-look="error" role="alert">
        <strong>The console made a mistake while it drew this page.</strong>
        <p>
          Nothing on the service has changed, and jobs go on. Try it again, or go to another page.
          If it stays so, tell who runs this service, with the words below.
        </p>
        <p class="row">
          <Button look="primary" onClick={onAgain}>
            Try again
          </Button>
          <Button onClick={() => location.reload()}>Reload the console</Button>
        </p>
        <details>
          <summary>What was thrown</summary>
          <pre class="thrown">{describe(error)}</pre>
        </details>
      </div>
    </>
  );
}

const describe = (error: unknown): string =>
  [location.pathname, error instanceof Error ? (error.stack ?? error.message) : String(error)].join(
    '\n',
  );
