import type { RefObject } from 'preact';
import { useEffect } from 'preact/hooks';

/**
 * An element with the focus may be removed, or disabled while its work is done. Browsers drop the focus then, and keys
 * and screen readers begin at the top again. Here it returns to the element, or to the nearest one around it that takes
 * the focus; in a dialog at last to where its next step begins, or to its heading. So it does where a page that was
 * hidden is shown again.
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
        const isUsable =
          target instanceof Element && target.checkVisibility() && !isDisabled(target);
        if (!isUsable || document.activeElement !== document.body) return;
        last[target.closest('dialog') ? 'dialog' : 'page'] = [];
      });
    const observer = new MutationObserver(() => {
      if (document.activeElement !== document.body) return;
      const dialog = root.querySelector('dialog[open]');
      const [had, ...around] = last[dialog ? 'dialog' : 'page'];
      if (!had || (had.isConnected && isDisabled(had))) return;
      const place = had.isConnected ? had : around.find(at => at.isConnected && takesFocus(at));
      if (place || !dialog) (place ?? root).focus({ preventScroll: true });
      else beginIn(dialog);
    });
    // The page itself may be hidden.
    observer.observe(document.body, {
      childList: true,
      subtree: true,
      attributeFilter: ['disabled', 'hidden'],
    });
    root.addEventListener('focusin', remember);
    root.addEventListener('focusout', forget);
    return () => {
      observer.disconnect();
      root.removeEventListener('focusin', remember);
      root.removeEventListener('focusout', forget);
    };
  }, [main]);
}

/** What is a part of a dialog by its name does so where its step has gone, and not before: a dialog that opens would give it the focus. */
function takesFocus(element: HTMLElement): boolean {
  if (element.matches('dialog [aria-label]:is(section, form)')) element.tabIndex = -1;
  return element.hasAttribute('tabindex');
}

/** Browsers heed `autofocus` where a dialog opens, and not where a step of it begins. */
function beginIn(dialog: Element): void {
  const wanted = dialog.querySelector<HTMLElement>('[autofocus]:not(:disabled)');
  const heading = dialog.querySelector<HTMLElement>('h2');
  if (!wanted && heading) heading.tabIndex = -1;
  (wanted ?? heading)?.focus({ preventScroll: true });
}

const isDisabled = (element: Element): boolean => element.matches(':disabled');
