import type { RefObject } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

/** For an element that takes the focus when it comes: the browser's `autofocus` does so in new pages and dialogs alone. */
export function useFocus<E extends HTMLElement>(isWanted = true): RefObject<E> {
  const element = useRef<E>(null);
  useLayoutEffect(() => {
    if (isWanted) element.current?.focus();
    // Once.
  }, []);
  return element;
}
