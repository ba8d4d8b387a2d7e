import type { RefObject } from 'preact';
import { useEffect, useMemo, useReducer, useRef } from 'preact/hooks';
import { ScrollScale } from '../log/scroll-scale.ts';

/** So long browsers take at most for a scroll, on a busy machine too. */
const HELD_MS = 5_000;
/** What users scroll by. */
const RELEASES = ['keydown', 'pointerdown', 'wheel'];

interface ScaledScroll {
  /** The first row that is seen, and how many px of it are not. */
  first: number;
  hidden: number;
  /** px. */
  left: number;
  width: number;
  view: number;
  /** px below what is seen: the height of what makes the scrollbar. */
  rest: number;
  moveTo: (row: number) => void;
}

/**
 * The visible ones of any number of rows. An element's height ends at some million px: beyond, the scrollbar is scaled,
 * as in the log. What is above the rows, `head` px, stands still.
 */
export function useScaledScroll(
  scroller: RefObject<HTMLElement>,
  { rows, rowHeight, head }: { rows: number; rowHeight: number; head: number },
): ScaledScroll {
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  const scale = useMemo(() => new ScrollScale(), []);
  // Whether the scrollbar has to follow the scale. Otherwise it is the user's, who may have moved it a moment ago.
  const follows = useRef(false);
  // It was sent to a row: a scroll that the browser had begun before does not lead away, what the user does next may.
  const heldUntil = useRef(0);
  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    let frame = 0;
    const later = () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        redraw(undefined);
      });
    };
    const onScroll = () => {
      if (Math.abs(element.scrollTop - scale.scrollTop) >= 1) {
        if (performance.now() < heldUntil.current) element.scrollTop = scale.scrollTop;
        else scale.scrolledTo(element.scrollTop);
        follows.current = true;
      }
      later();
    };
    const release = () => {
      heldUntil.current = 0;
    };
    const onKey = (event: KeyboardEvent) => {
      // Goes to an end at once: browsers go there in many steps, and small last ones would end a few rows before it.
      if (event.target !== element || (event.key !== 'Home' && event.key !== 'End')) return;
      event.preventDefault();
      if (event.key === 'Home') scale.moveTo(0);
      else scale.moveToEnd();
      heldUntil.current = performance.now() + HELD_MS;
      element.scrollTop = scale.scrollTop;
      later();
    };
    const observer = new ResizeObserver(later);
    observer.observe(element);
    element.addEventListener('scroll', onScroll, { passive: true });
    for (const type of RELEASES) element.addEventListener(type, release, { passive: true });
    element.addEventListener('keydown', onKey);
    return () => {
      cancelAnimationFrame(frame);
      observer.disconnect();
      element.removeEventListener('scroll', onScroll);
      for (const type of RELEASES) element.removeEventListener(type, release);
      element.removeEventListener('keydown', onKey);
    };
  }, [scroller, scale]);
  const element = scroller.current;
  const view = Math.max(rowHeight, (element?.clientHeight ?? 600) - head);
  const before = scale.scrollTop;
  scale.resize({ lines: rows, rowHeight, view });
  if (scale.scrollTop !== before) follows.current = true;
  // The element is high enough once it is drawn.
  useEffect(() => {
    if (!element || !follows.current) return;
    follows.current = false;
    if (Math.abs(element.scrollTop - scale.scrollTop) >= 1) element.scrollTop = scale.scrollTop;
  });
  const first = Math.floor(scale.top / rowHeight);
  return {
    first,
    hidden: scale.top - first * rowHeight,
    left: element?.scrollLeft ?? 0,
    width: element?.clientWidth ?? 1_000,
    view,
    rest: Math.max(0, scale.height - view),
    moveTo: row => {
      const from = scale.scrollTop;
      scale.moveTo(row * rowHeight);
      if (scale.scrollTop !== from) heldUntil.current = performance.now() + HELD_MS;
      follows.current = true;
      redraw(undefined);
    },
  };
}
