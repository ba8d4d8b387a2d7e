import { useRef } from 'preact/hooks';
import { usePresentTitle } from './use-title.ts';

/** Tells the page that was gone to to who hears it: a browser does so for new documents alone. */
export function AnnouncedPage({ path }: { path: string }) {
  const title = usePresentTitle();
  const first = useRef(path);
  const isFirst = first.current === path;
  if (!isFirst) first.current = '';
  return (
    <p class="visually-hidden" aria-live="polite">
      {!isFirst && title}
    </p>
  );
}
