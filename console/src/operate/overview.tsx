import { useMemo } from 'preact/hooks';
import { serviceNow } from '../service/clock.ts';
import { useStatistics, useWorkers } from '../service/operations.ts';
import { SERVICE_PATH } from '../service/place.ts';
import { formatCount } from '../ui/numbers.ts';
import { Problem } from '../ui/problem.tsx';
import { formatDuration } from '../ui/time.tsx';
import { useAddress } from '../ui/use-address.ts';
import { Wait } from '../ui/wait.tsx';
import { toSteps } from './steps.ts';
import { TimePlot } from './time-plot.tsx';
import { Workers } from './workers.tsx';

const MINUTE = 60;
const HOUR = 60 * MINUTE;
/** In seconds, in some hundred steps, whatever the browser's clock says. */
const DAY = { id: 'day', name: 'Day', seconds: 24 * HOUR, step: 15 * MINUTE };
const RANGES = [
  { id: 'hour', name: 'Hour', seconds: HOUR, step: MINUTE },
  DAY,
  { id: 'week', name: 'Week', seconds: 7 * 24 * HOUR, step: 2 * HOUR },
  { id: 'month', name: 'Month', seconds: 30 * 24 * HOUR, step: 8 * HOUR },
];

const seconds = (value: number) =>
  value < 1 ? `${Math.round(value * 1_000)} ms` : formatDuration(value * 1_000);

/** Whether work is done: the workers, and how jobs fared. */
export function Overview() {
  const [search, change] = useAddress();
  const range = RANGES.find(({ id }) => id === search.get('range')) ?? DAY;
  const kind = search.get('kind') ?? '';
  const workers = useWorkers();
  const { data, error, isPlaceholderData } = useStatistics(range);
  const kinds = useMemo(() => [...new Set(data?.items.map(item => item.kind))].sort(), [data]);
  const steps = useMemo(() => data && toSteps(data, kind, serviceNow()), [data, kind]);
  return (
    <>
      {workers.error && <Problem error={workers.error} />}
      {workers.data && <Workers workers={workers.data} />}
      {!workers.data && !workers.error && <Wait>Asking for workers …</Wait>}
      <div class="page-head">
        <h2>Jobs over time</h2>
        <div class="row">
          <label class="row">
            <span class="visually-hidden">Kind of jobs</span>
            <select
              class="input"
              value={kind}
              onChange={event => change({ kind: event.currentTarget.value })}
            >
              <option value="">All kinds</option>
              {[...new Set([...kinds, ...(kind === '' ? [] : [kind])])].map(each => (
                <option key={each} value={each}>
                  {each}
                </option>
              ))}
            </select>
          </label>
          <fieldset class="tabs" aria-label="The last">
            {RANGES.map(({ id, name }) => (
              <label key={id}>
                <input
                  type="radio"
                  name="range"
                  checked={id === range.id}
                  onChange={() => change({ range: id === DAY.id ? undefined : id })}
                />
                {name}
              </label>
            ))}
          </fieldset>
        </div>
      </div>
      {error && <Problem error={error} />}
      {(!steps || isPlaceholderData) && !error && <Wait>Asking for statistics …</Wait>}
      {steps && (
        <div class="plots" aria-busy={isPlaceholderData}>
          <TimePlot
            title="Jobs that ended"
            times={steps.times}
            stepMs={steps.stepMs}
            look="columns"
            format={formatCount}
            series={[
              { name: 'Failed', tone: 'red', values: steps.failed },
              { name: 'Cancelled', tone: 'grey', values: steps.cancelled },
              { name: 'Succeeded', tone: 'green', values: steps.succeeded },
            ]}
          />
          <TimePlot
            title="Jobs at once"
            times={steps.times}
            stepMs={steps.stepMs}
            look="lines"
            format={formatCount}
            series={[
              { name: 'Waiting', tone: 'amber', values: steps.waiting },
              { name: 'Running', tone: 'blue', values: steps.running },
            ]}
          />
          <TimePlot
            title={kind === '' ? 'Wait for a start, of the slowest kind' : 'Wait for a start'}
            times={steps.times}
            stepMs={steps.stepMs}
            look="lines"
            format={seconds}
            series={[
              { name: '95 %', tone: 'amber', values: steps.wait95 },
              { name: 'Median', tone: 'blue', values: steps.waitMedian },
            ]}
          />
          <TimePlot
            title={kind === '' ? 'From start to end, of the slowest kind' : 'From start to end'}
            times={steps.times}
            stepMs={steps.stepMs}
            look="lines"
            format={seconds}
            series={[
              { name: '95 %', tone: 'amber', values: steps.took95 },
              { name: 'Median', tone: 'blue', values: steps.tookMedian },
            ]}
          />
        </div>
      )}
      <p class="muted">
        Workers count once a minute; the last minute or two are not in it. Prometheus finds more at{' '}
        <a href={`${SERVICE_PATH}metrics`}>/metrics</a>, and what is in the queues is on{' '}
        <a href={`${SERVICE_PATH}admin/queues`}>Bull Board</a>.
      </p>
    </>
  );
}
