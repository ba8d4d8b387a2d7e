import type { TargetedKeyboardEvent, TargetedPointerEvent } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { type Column, type TableKey, useSeries } from '../service/tables.ts';
import { Button } from '../ui/button.tsx';
import { formatCount } from '../ui/numbers.ts';
import { Problem } from '../ui/problem.tsx';
import { Wait } from '../ui/wait.tsx';
import { drawSeries, nearestFilled, scaleOf } from './plot-scale.ts';

/** What is zoomed into, the widest first; ends are values of x as the service tells them. */
export type Zoom = { from: string; to: string }[];

interface SeriesPlotProps {
  table: TableKey;
  /** The filters that the plotted rows pass. */
  filter: string[];
  x: Column;
  y: Column;
  zoom: Zoom;
  onZoom: (zoom: Zoom) => void;
}

/** Buckets are about as wide as a pixel; the width is rounded, so that a little change asks for nothing. */
const STEP = 100;
const MAX = 2_000;

/**
 * One column plotted over another. Each zoom asks for its own buckets, from edge to edge of the last ones, so that
 * every depth is exact. A range is drawn with the pointer, or with Shift, the arrow keys and Enter.
 */
export function SeriesPlot({ table, filter, x, y, zoom, onZoom }: SeriesPlotProps) {
  const area = useRef<HTMLDivElement>(null);
  const points = usePoints(area);
  const { from, to } = zoom.at(-1) ?? {};
  const range = { filter, x: x.name, y: y.name, points, from, to };
  const { data, error, isPlaceholderData } = useSeries(table, range);
  const [told, setTold] = useState<number>();
  const [anchor, setAnchor] = useState<number>();
  const scale = useMemo(() => scaleOf(y), [y]);
  const along = useMemo(() => scaleOf(x), [x]);
  const drawing = useMemo(() => data && drawSeries(data, scale), [data, scale]);
  const buckets = data?.buckets;
  const count = buckets?.count.length ?? 0;
  const latest = Math.max(0, count - 1);
  const isChosen = anchor !== undefined && told !== undefined && anchor !== told;
  const bucketAt = (event: TargetedPointerEvent<HTMLElement>) => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    const at = Math.floor((count * (event.clientX - left)) / width);
    return Math.max(0, Math.min(latest, at));
  };
  const zoomTo = (one: number, other: number) => {
    const first = buckets?.from[Math.min(one, other)];
    const end = buckets?.to[Math.max(one, other)];
    setAnchor(undefined);
    setTold(undefined);
    if (first !== undefined && end !== undefined)
      onZoom([...zoom, { from: String(first), to: String(end) }]);
  };
  const zoomIn = () => {
    const middle = told ?? Math.floor(count / 2);
    const half = Math.floor(count / 4);
    zoomTo(Math.max(0, middle - half), Math.min(latest, middle + half));
  };
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLElement>) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, PageDown: 20, PageUp: -20 }[event.key];
    if (by !== undefined) {
      const at = told ?? Math.floor(count / 2);
      if (!event.shiftKey) setAnchor(undefined);
      else if (anchor === undefined) setAnchor(at);
      setTold(Math.max(0, Math.min(latest, at + by)));
    } else if (event.key === 'Enter' && isChosen) zoomTo(anchor, told);
    else if (event.key === '+') zoomIn();
    else if (event.key === '-' && zoom.length > 0) onZoom(zoom.slice(0, -1));
    else return;
    event.preventDefault();
  };
  // Deep in a zoom most buckets are empty: what is told is the nearest value.
  const seen = told === undefined || !data ? undefined : nearestFilled(data, told);
  const words =
    seen === undefined || !buckets
      ? `${formatCount(count)} steps`
      : `${along.format(buckets.from[seen])} to ${along.format(buckets.to[seen])}: ${
          buckets.count[seen] === 0
            ? 'no value'
            : `${scale.format(buckets.min[seen])} to ${scale.format(buckets.max[seen])} in ${rowsOf(buckets.count[seen])}`
        }`;
  return (
    <figure class="plot card series" aria-label={`${y.name} along ${x.name}`}>
      <figcaption class="plot-head">
        <h2>
          {y.name} along {x.name}
        </h2>
        <p class="muted plot-told">{words}</p>
        <span class="row">
          <Button size="small" disabled={count < 4} repeats onClick={zoomIn}>
            Zoom in
          </Button>
          <Button
            size="small"
            disabled={zoom.length === 0}
            repeats
            onClick={() => onZoom(zoom.slice(0, -1))}
          >
            Zoom out
          </Button>
          <Button size="small" disabled={zoom.length === 0} onClick={() => onZoom([])}>
            All
          </Button>
        </span>
      </figcaption>
      {error && <Problem error={error} />}
      <div
        class="plot-area"
        ref={area}
        role="slider"
        aria-label={`${y.name} along ${x.name}`}
        aria-valuemin={0}
        aria-valuemax={latest}
        aria-valuenow={told ?? 0}
        aria-valuetext={words}
        aria-busy={isPlaceholderData}
        tabIndex={0}
        onPointerDown={event => {
          event.currentTarget.setPointerCapture(event.pointerId);
          setAnchor(bucketAt(event));
          setTold(bucketAt(event));
        }}
        onPointerMove={event => setTold(bucketAt(event))}
        onPointerUp={() => {
          if (isChosen) zoomTo(anchor, told);
          else setAnchor(undefined);
        }}
        onPointerLeave={() => {
          if (anchor === undefined) setTold(undefined);
        }}
        onKeyDown={onKeyDown}
      >
        {drawing && (
          <>
            <span class="plot-top">{scale.round(drawing.greatest)}</span>
            <span class="plot-bottom">{scale.round(drawing.least)}</span>
          </>
        )}
        <svg
          viewBox={`0 -0.02 ${Math.max(1, count)} 1.04`}
          preserveAspectRatio="none"
          aria-hidden="true"
        >
          <path class="plot-grid" d={`M0 0H${count}M0 0.5H${count}M0 1H${count}`} />
          {isChosen && (
            <rect
              class="plot-chosen"
              x={Math.min(told, anchor)}
              y="-0.02"
              width={Math.abs(anchor - told) + 1}
              height="1.04"
            />
          )}
          {!isChosen && seen !== undefined && <path class="plot-at" d={`M${seen + 0.5} 0V1`} />}
          <path class="plot-line" data-tone="blue" d={drawing?.line ?? ''} />
          {drawing?.dots.map(dot => (
            // A line without length is drawn as its round end, whatever the picture's proportions.
            <path key={dot.x} class="plot-dot" d={`M${dot.x} ${dot.y}h0`} />
          ))}
        </svg>
        {!data && !error && <Wait>Reading both columns …</Wait>}
        {data && count === 0 && <p class="muted plot-none">There is no pair of values.</p>}
      </div>
      <p class="plot-times muted">
        <span>{count > 0 && along.round(buckets?.from[0])}</span>
        <span>{count > 0 && along.round(buckets?.to[latest])}</span>
      </p>
    </figure>
  );
}

const rowsOf = (count = 0) => (count === 1 ? 'one row' : `${formatCount(count)} rows`);

/** The number of buckets that fit. */
function usePoints(area: { current: HTMLElement | null }): number {
  const [points, setPoints] = useState(0);
  useEffect(() => {
    const element = area.current;
    if (!element) return;
    const observer = new ResizeObserver(() => {
      const width = Math.round(element.clientWidth / STEP) * STEP;
      setPoints(Math.max(STEP, Math.min(MAX, width)));
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [area]);
  return points;
}
