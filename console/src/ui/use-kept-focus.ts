import type { RefObject } from 'preact';
import { useEffect } from 'preact/hooks';

/**
 * An element with the focus may be removed, or disabled while its work is done. Browsers drop the focus then, and keys
 * and screen readers begin at the top again. Here it returns to the element, or to the nearest one around it that takes
 * the focus.
 */
export function useKeptFocus(main: RefObject<HTMLElement>): void {
  useEffect(() => {
    const root = main.current;
    if (!root) return;
    /** What had the focus in the page, and in the dialog over it: each with all that is around it. */
    const last: Record<'page' | 'dialog', HTMLElement[]> = { page: [], dialog: [] };
    const remember = ({ target }: FocusEvent) => {
      if (!(target instanceof HTMLElement)) return;
      const chain: HTMLElement[] = [];
      for (let at: HTMLElement | null = target; at && at !== root; at = at.parentElement)
        chain.push(at);
      last[target.closest('dialog') ? 'dialog' : 'page'] = chain;
    };
    // Who clicks beside everything wants no focus.
    const forget = ({ target }: FocusEvent) =>
      queueMicrotask(() => {
        const isUsable = target instanceof Element && target.isConnected && !isDisabled(target);
        if (!isUsable || document.activeElement !== document.body) return;
        last[target.closest('dialog') ? 'dialog' : 'page'] = [];
      });
    const observer = new MutationObserver(() => {
      if (document.activeElement !== document.body) return;
      const dialog = document.querySelector('dialog[open]');
      const [had, ...around] = last[dialog ? 'dialog' : 'page'];
      if (!had || (had.isConnected && isDisabled(had))) return;
      const place = had.isConnected
        ? had
        : around.find(at => at.isConnected && at.hasAttribute('tabindex'));
      (place ?? (dialog ? undefined : root))?.focus({ preventScroll: true });
    });
    observer.observe(root, { childList: true, subtree: true, attributeFilter: ['disabled'] });
    root.addEventListener('focusin', remember);
    root.addEventListener('focusout', forget);
    return () => {
      observer.disconnect();
      root.removeEventListener('focusin', remember);
      root.removeEventListener('focusout', forget);
    };
  }, [main]);
}

const isDisabled = (element: Element): boolean => element.matches(':disabled');
