import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

/**
 * A new page begins at its top; on the way back the browser knows the place. It takes the focus from the link that led
 * to it, so that keys and screen readers continue in it. An element of it that already has the focus keeps it.
 */
export function useArrival(path: string, main: RefObject<HTMLElement>): void {
  const before = useRef(location.pathname);
  const isBack = useRef(false);
  useEffect(() => {
    const goBack = () => {
      isBack.current = location.pathname !== before.current;
    };
    addEventListener('popstate', goBack);
    return () => removeEventListener('popstate', goBack);
  }, []);
  useEffect(() => {
    if (before.current === location.pathname) return;
    before.current = location.pathname;
    if (!isBack.current) scrollTo(0, 0);
    isBack.current = false;
    if (!main.current?.contains(document.activeElement))
      main.current?.focus({ preventScroll: true });
  }, [path, main]);
}
