import { exitStatus, isEnded, type ListedJob, useHistory } from '../service/jobs.ts';
import { formatDuration, Time, useNow } from '../ui/time.tsx';
import {
  type Attempt,
  eventsOfRecord,
  type HistoryEvent,
  hadTrouble,
  type Segment,
  timeIn,
  toAttempts,
  toSegments,
} from './history.ts';

const WORDS: Record<HistoryEvent['event'], string> = {
  queued: 'Accepted',
  claimed: 'A worker took it',
  running: 'The host’s scheduler runs it',
  sent: 'Sent to its host',
  lease_lost: 'Its worker was lost',
  host_unreachable: 'Its host could not be reached',
  reconnected: 'Its host was reached again',
  cancel_requested: 'Somebody asked for its end',
  ended: 'Ended',
};

/** How long a job waited and ran, in proportion, attempt by attempt; and what happened to it. */
export function JobTimeline({ job }: { job: ListedJob }) {
  const now = useNow(1_000);
  const { data } = useHistory(job);
  const events = data ?? eventsOfRecord(job);
  const segments = toSegments(events, now, job.finished);
  const isOpen = !isEnded(job);
  const unreachable = timeIn(segments, 'unreachable');
  const attempts = toAttempts(segments, !isOpen);
  const state = exitStatus(job) ? 'failed' : job.state;
  return (
    <section class="card timeline" aria-label="Timeline">
      <Bar segments={segments} state={state} />
      <ol class="timeline-sums" aria-label="Times">
        <li class="timeline-step">
          <span class="timeline-what">Created</span>
          <Time at={job.created} />
        </li>
        <li class="timeline-step">
          <span class="timeline-what">{job.started ? 'Waited' : 'Waits'}</span>
          {formatDuration(timeIn(segments, 'waiting'), isOpen && !job.started)}
        </li>
        {job.started && (
          <li class="timeline-step">
            <span class="timeline-what">{isOpen ? 'Runs' : 'Ran'}</span>
            {formatDuration(timeIn(segments, 'running'), isOpen)}
          </li>
        )}
        {unreachable > 0 && (
          <li class="timeline-step">
            <span class="timeline-what">Host unreachable</span>
            {formatDuration(unreachable)}
          </li>
        )}
        {attempts.length > 0 && (
          <li class="timeline-step">
            <span class="timeline-what">Attempts</span>
            {attempts.length}
          </li>
        )}
        {job.finished && (
          <li class="timeline-step">
            <span class="timeline-what">Ended</span>
            <Time at={job.finished} />
          </li>
        )}
      </ol>
      {attempts.length > 0 && <Attempts attempts={attempts} end={endOf(job)} />}
      <details open={hadTrouble(events)}>
        <summary>What happened, {events.length} steps</summary>
        <ol class="events" aria-label="What happened">
          {events.map(({ time, event, worker }) => (
            <li key={`${time} ${event}`} data-event={event}>
              <Time at={time} isShort />
              <span>{WORDS[event] ?? event}</span>
              {worker && <span class="muted ellipsis">{worker}</span>}
            </li>
          ))}
        </ol>
      </details>
    </section>
  );
}

function endOf(job: ListedJob): string {
  const code = exitStatus(job);
  return code ? `exit status ${code}` : job.state;
}

const ENDS = { lost: 'its worker was lost', open: 'has it' };

/** Which worker had it, and for how long. */
const Attempts = ({ attempts, end: last }: { attempts: Attempt[]; end: string }) => (
  <ol class="attempts" aria-label="Attempts">
    {attempts.map(({ worker, from, to, end }, n) => (
      <li key={from} data-end={end}>
        <span>{n + 1}.</span>
        <span class="mono ellipsis" title={worker}>
          {worker ?? 'a worker'}
        </span>
        <span class="muted">{formatDuration(to - from, end === 'open')}</span>
        <span class="attempt-end">{end === 'last' ? last : ENDS[end]}</span>
      </li>
    ))}
  </ol>
);

function Bar({ segments, state }: { segments: Segment[]; state: ListedJob['state'] }) {
  const begin = segments[0]?.from ?? 0;
  const all = Math.max(1, (segments.at(-1)?.to ?? 0) - begin);
  return (
    <svg class="timeline-bar" viewBox="0 0 1000 8" preserveAspectRatio="none" aria-hidden="true">
      {segments.map(({ phase, from, to }, i) => (
        <rect
          key={from}
          class={`bar-${phase}`}
          data-state={i === segments.length - 1 ? state : 'lost'}
          x={(1_000 * (from - begin)) / all}
          width={(1_000 * (to - from)) / all}
          height="8"
        />
      ))}
    </svg>
  );
}
