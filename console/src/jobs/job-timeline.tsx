import { exitStatus, type ListedJob } from '../service/jobs.ts';
import { formatDuration, Time, useNow } from '../ui/time.tsx';

/** How long a job waited, and how long it ran, in proportion; then its moments. */
export function JobTimeline({ job }: { job: ListedJob }) {
  const now = useNow(1_000);
  const { created, started, finished, state, worker } = job;
  const end = finished === null ? Math.max(now, Date.parse(created)) : Date.parse(finished);
  const start = started === null ? end : Date.parse(started);
  const waited = Math.max(0, start - Date.parse(created));
  const ran = Math.max(0, end - start);
  const isOpen = finished === null;
  return (
    <section class="card timeline" aria-label="Timeline">
      <svg class="timeline-bar" viewBox="0 0 1000 8" preserveAspectRatio="none" aria-hidden="true">
        <rect class="bar-waited" width={share(waited, waited + ran)} height="8" />
        <rect
          class="bar-ran"
          data-state={exitStatus(job) ? 'failed' : state}
          x={share(waited, waited + ran)}
          width={1_000 - share(waited, waited + ran)}
          height="8"
        />
      </svg>
      <ol>
        <li class="timeline-step">
          <span class="timeline-what">Created</span>
          <Time at={created} />
        </li>
        <li class="timeline-step">
          <span class="timeline-what">{started ? 'Waited' : 'Waits'}</span>
          {formatDuration(waited, isOpen && !started)}
        </li>
        {started && (
          <li class="timeline-step">
            <span class="timeline-what">{isOpen ? 'Runs' : 'Ran'}</span>
            <span>
              {formatDuration(ran, isOpen)}
              {worker && <span class="muted"> on {worker}</span>}
            </span>
          </li>
        )}
        {finished && (
          <li class="timeline-step">
            <span class="timeline-what">Ended</span>
            <Time at={finished} />
          </li>
        )}
      </ol>
    </section>
  );
}

const share = (part: number, all: number) => (all === 0 ? 0 : Math.round((1_000 * part) / all));
