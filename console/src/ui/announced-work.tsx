import { useEffect, useState } from 'preact/hooks';
import { queries } from '../service/client.ts';

/** What is around a dialog is not heard until it is closed, as it is by the end of its work. */
const CLOSING_MS = 150;

/** Tells who hears the page what was done, where it shows by something that is gone or new: `done` in the `meta` of a mutation. */
export function AnnouncedWork() {
  const [told, tell] = useState('');
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>;
    const stop = queries.getMutationCache().subscribe(event => {
      if (event.type !== 'updated' || event.action.type !== 'success') return;
      const done = event.mutation.meta?.done;
      if (typeof done !== 'string') return;
      clearTimeout(timer);
      tell('');
      timer = setTimeout(() => tell(done), CLOSING_MS);
    });
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, []);
  return (
    <p class="visually-hidden" role="status" aria-label="Done">
      {told}
    </p>
  );
}
