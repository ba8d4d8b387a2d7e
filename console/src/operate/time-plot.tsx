import type { TargetedKeyboardEvent, TargetedPointerEvent } from 'preact';
import { useState } from 'preact/hooks';

export interface PlotSeries {
  name: string;
  /** A colour of the styles. */
  tone: string;
  /** One value for each step; null where nothing is known. */
  values: (number | null)[];
}

interface TimePlotProps {
  title: string;
  /** Where each step begins, in ms since 1970, and how long it is. */
  times: number[];
  stepMs: number;
  series: PlotSeries[];
  /** Columns are stacked, lines are not. */
  look: 'columns' | 'lines';
  format: (value: number) => string;
}

const HEIGHT = 100;
const DAY_MS = 86_400_000;
const ofDay = new Intl.DateTimeFormat(undefined, { timeStyle: 'short' });
const ofMonth = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });

/** Numbers over time. The pointer or the arrow keys show those of a step. */
export function TimePlot({ title, times, stepMs, series, look, format }: TimePlotProps) {
  const [told, setTold] = useState<number>();
  const count = times.length;
  const top = niceTop(Math.max(0, ...heights(series, look, count)));
  const y = (value: number) => HEIGHT - (HEIGHT * value) / top;
  const latest = Math.max(0, count - 1);
  const isEmpty = series.every(({ values }) => values.every(value => !value));
  const move = (event: TargetedPointerEvent<HTMLElement>) => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    const at = Math.floor((count * (event.clientX - left)) / width);
    setTold(Math.max(0, Math.min(latest, at)));
  };
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLElement>) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    setTold(Math.max(0, Math.min(latest, (told ?? latest) + by)));
  };
  const stepOf = (at: number) => {
    const time = times[at] ?? 0;
    const isLong = stepMs * count > DAY_MS;
    return (isLong ? ofMonth : ofDay).format(time);
  };
  const toldOf = ({ values }: PlotSeries) => {
    if (told !== undefined) return values[told] ?? null;
    const known = values.filter(value => value !== null);
    if (known.length === 0) return null;
    return look === 'columns' ? known.reduce((sum, value) => sum + value, 0) : Math.max(...known);
  };
  const scope = told === undefined ? (look === 'columns' ? 'in all' : 'at most') : stepOf(told);
  const words = series.map(each => `${each.name} ${tell(toldOf(each), format)}`).join(', ');
  return (
    <figure class="plot card" aria-label={title}>
      <figcaption class="plot-head">
        <h3>{title}</h3>
        <p class="plot-legend">
          <span class="muted">{scope}</span>
          {series.map(each => (
            <span key={each.name} class="plot-name" data-tone={each.tone}>
              {each.name} <strong>{tell(toldOf(each), format)}</strong>
            </span>
          ))}
        </p>
      </figcaption>
      <div
        class="plot-area"
        role="slider"
        aria-label={title}
        aria-valuemin={0}
        aria-valuemax={latest}
        aria-valuenow={told ?? latest}
        aria-valuetext={`${scope}: ${words}`}
        tabIndex={0}
        onPointerMove={move}
        onPointerLeave={() => setTold(undefined)}
        onKeyDown={onKeyDown}
        onBlur={() => setTold(undefined)}
      >
        {isEmpty ? (
          <p class="plot-empty muted">Nothing in this time</p>
        ) : (
          <span class="plot-top">{format(top)}</span>
        )}
        <svg
          viewBox={`0 0 ${Math.max(1, count)} ${HEIGHT}`}
          preserveAspectRatio="none"
          aria-hidden="true"
        >
          <path class="plot-grid" d={`M0 0H${count}M0 50H${count}M0 100H${count}`} />
          {told !== undefined && (
            <rect class="plot-cursor" x={told} y="0" width="1" height={HEIGHT} />
          )}
          {look === 'columns'
            ? columnsOf(series, count).map(({ tone, at, from, to }) => (
                <rect
                  key={`${tone} ${at}`}
                  class="plot-column"
                  data-tone={tone}
                  x={at + 0.1}
                  width="0.8"
                  y={y(to)}
                  height={y(from) - y(to)}
                />
              ))
            : series.map(({ name, tone, values }) => (
                <path key={name} class="plot-line" data-tone={tone} d={lineOf(values, y)} />
              ))}
        </svg>
      </div>
      <p class="plot-times muted">
        <span>{count > 0 && stepOf(0)}</span>
        <span>{count > 0 && stepOf(latest)}</span>
      </p>
    </figure>
  );
}

const tell = (value: number | null, format: (value: number) => string) =>
  value === null ? '–' : format(value);

/** The values that have to fit below the top. */
function heights(series: PlotSeries[], look: TimePlotProps['look'], count: number): number[] {
  if (look === 'lines') return series.flatMap(({ values }) => values.filter(v => v !== null));
  return Array.from({ length: count }, (_, at) =>
    series.reduce((sum, { values }) => sum + (values[at] ?? 0), 0),
  );
}

function columnsOf(series: PlotSeries[], count: number) {
  return Array.from({ length: count }, (_, at) => {
    let from = 0;
    return series.flatMap(({ tone, values }) => {
      const value = values[at] ?? 0;
      if (value === 0) return [];
      const column = { tone, at, from, to: from + value };
      from += value;
      return [column];
    });
  }).flat();
}

/** The path of a line. Steps without a value interrupt it; a value that stands alone is as wide as its step. */
function lineOf(values: (number | null)[], y: (value: number) => number): string {
  return values
    .map((value, at) => {
      if (value === null) return '';
      const isFirst = (values[at - 1] ?? null) === null;
      const isAlone = isFirst && (values[at + 1] ?? null) === null;
      if (isAlone) return `M${at} ${y(value)}H${at + 1}`;
      return `${isFirst ? 'M' : 'L'}${at + 0.5} ${y(value)}`;
    })
    .join('');
}

/** 1, 2 or 5 times a power of ten, not below the value. */
function niceTop(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map(by => by * power).find(top => top >= value * (1 - 1e-9)) ?? value;
}
