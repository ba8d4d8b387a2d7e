import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

/**
 * A page that is gone to begins at its top; where one goes back the browser knows the place. It takes the focus from what led
 * to it, so that the keys and a screen reader go on in it; what is in it and has it, such as a field or a tab, keeps it.
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
