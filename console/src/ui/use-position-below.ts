import type { RefObject } from 'preact';
import { useLayoutEffect } from 'preact/hooks';

interface AnchoredPopup {
  popup: RefObject<HTMLElement>;
  anchor: RefObject<HTMLElement>;
  isOpen: boolean;
}

/** px. */
const GAP = 4;
const MARGIN = 8;
const HIGHEST = 320;

/** Shows a popover below its anchor, or above it where there is more room, over dialogs too, and keeps it there. */
export function usePositionBelow({ popup, anchor, isOpen }: AnchoredPopup): void {
  useLayoutEffect(() => {
    const element = popup.current;
    const field = anchor.current?.parentElement;
    if (!isOpen || !element || !field) return;
    const position = () => {
      const { top, bottom, left, width } = field.getBoundingClientRect();
      const below = innerHeight - bottom - GAP - MARGIN;
      const above = top - GAP - MARGIN;
      const isBelow = below >= Math.min(HIGHEST, above);
      const { style } = element;
      style.minWidth = `${width}px`;
      style.maxHeight = `${Math.min(HIGHEST, isBelow ? below : above)}px`;
      style.top = isBelow ? `${bottom + GAP}px` : 'auto';
      style.bottom = isBelow ? 'auto' : `${innerHeight - top + GAP}px`;
      style.left = `${Math.max(MARGIN, Math.min(left, innerWidth - element.offsetWidth - MARGIN))}px`;
    };
    element.showPopover();
    position();
    addEventListener('scroll', position, { capture: true, passive: true });
    addEventListener('resize', position);
    return () => {
      removeEventListener('scroll', position, { capture: true });
      removeEventListener('resize', position);
      element.hidePopover();
    };
  }, [popup, anchor, isOpen]);
}
