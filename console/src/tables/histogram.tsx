import {
  type Column,
  type TableKey,
  useHistogram,
  type Value,
  valueText,
} from '../service/tables.ts';
import { formatCount } from '../ui/numbers.ts';
import { Problem } from '../ui/problem.tsx';
import { Wait } from '../ui/wait.tsx';

const BINS = 30;
const HEIGHT = 60;

interface ColumnHistogramProps {
  table: TableKey;
  column: Column;
  /** The filters that the counted rows pass. */
  filter: string[];
  /** Filters by what was chosen in it. */
  onFilter: (filters: string[]) => void;
}

/** How often a column has which values. A bar filters the rows by what it counts. */
export function ColumnHistogram({ table, column, filter, onFilter }: ColumnHistogramProps) {
  const { data, error } = useHistogram(table, { column: column.name, bins: BINS, filter });
  if (error) return <Problem error={error} />;
  if (!data) return <Wait>Counting its values …</Wait>;
  const { name } = column;
  if (data.values)
    return (
      <ul class="counts">
        {data.values.map(({ value, count }) => (
          <li key={String(value)}>
            <button
              type="button"
              class="count"
              title="Show these rows alone"
              onClick={() => onFilter([`${name}:eq:${value}`])}
            >
              <Bar part={count / Math.max(1, ...countsOf(data.values ?? []))} />
              <span class="ellipsis">{tell(value)}</span>
              <span class="muted">{formatCount(count)}</span>
            </button>
          </li>
        ))}
        {data.values.length === 0 && <li class="muted">It has no value.</li>}
      </ul>
    );
  const bins = data.bins ?? [];
  const most = Math.max(1, ...countsOf(bins));
  if (bins.length === 0) return <p class="muted">It has no value.</p>;
  return (
    <div class="bins">
      <ul class="bins-bars">
        {bins.map(({ from, to, count }, n) => {
          const last = n === bins.length - 1;
          const words = `${tell(from)} to ${tell(to)}: ${formatCount(count)}`;
          return (
            <li key={String(from)}>
              <button
                type="button"
                class="bin"
                aria-label={`${words}. Show these rows alone`}
                title={words}
                onClick={() =>
                  onFilter([`${name}:ge:${from}`, `${name}:${last ? 'le' : 'lt'}:${to}`])
                }
              >
                <svg viewBox={`0 0 1 ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
                  <rect
                    class="plot-column"
                    x="0"
                    width="1"
                    y={HEIGHT - heightOf(count, most)}
                    height={heightOf(count, most)}
                  />
                </svg>
              </button>
            </li>
          );
        })}
      </ul>
      <p class="plot-times muted">
        <span class="ellipsis">{tell(bins[0]?.from)}</span>
        <span class="ellipsis">{tell(bins.at(-1)?.to)}</span>
      </p>
    </div>
  );
}

const countsOf = (items: { count: number }[]) => items.map(({ count }) => count);
/** The height of a bar: even the least count is visible. */
const heightOf = (count: number, most: number) =>
  count === 0 ? 0 : Math.max(1.5, (HEIGHT * count) / most);
const tell = (value: Value | undefined) =>
  value === '' ? 'an empty text' : valueText(value ?? null);

const Bar = ({ part }: { part: number }) => (
  <svg class="count-bar" viewBox="0 0 1 1" preserveAspectRatio="none" aria-hidden="true">
    <rect x="0" y="0" width={part} height="1" />
  </svg>
);
