import type { ComponentChildren, RefObject } from 'preact';
import { useEffect, useState } from 'preact/hooks';

interface VirtualRowsProps {
  /** What is scrolled. */
  scroller: RefObject<HTMLElement>;
  count: number;
  /** px; of every row. */
  rowHeight: number;
  /** A row that is drawn wherever one looks, such as the one that has the focus. */
  keep: number;
  row: (at: number) => ComponentChildren;
}

/** Rows drawn beyond what is seen, so that none is missing while it is scrolled. */
const SPARE = 6;

/** Draws only the rows that are seen, as high as all together: up to some 500,000, where elements end. */
export function VirtualRows({ scroller, count, rowHeight, keep, row }: VirtualRowsProps) {
  const [seen, setSeen] = useState({ top: 0, height: 600 });
  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    let frame = 0;
    const measure = () => {
      frame = 0;
      setSeen({ top: element.scrollTop, height: element.clientHeight });
    };
    const later = () => {
      frame ||= requestAnimationFrame(measure);
    };
    const observer = new ResizeObserver(later);
    observer.observe(element);
    element.addEventListener('scroll', later, { passive: true });
    return () => {
      cancelAnimationFrame(frame);
      observer.disconnect();
      element.removeEventListener('scroll', later);
    };
  }, [scroller]);
  const end = Math.min(count, Math.ceil((seen.top + seen.height) / rowHeight) + SPARE);
  const first = Math.max(0, Math.min(end, Math.floor(seen.top / rowHeight) - SPARE));
  const shown = Array.from({ length: end - first }, (_, n) => first + n);
  if (keep >= 0 && keep < first) shown.unshift(keep);
  if (keep >= end && keep < count) shown.push(keep);
  return (
    <div class="virtual" style={{ height: `${count * rowHeight}px` }}>
      {shown.map(at => (
        <div key={at} class="virtual-row" style={{ transform: `translateY(${at * rowHeight}px)` }}>
          {row(at)}
        </div>
      ))}
    </div>
  );
}
