/** As GET /jobs/(id)/history tells it. */
export interface HistoryEvent {
  time: string;
  event:
    | 'queued'
    | 'claimed'
    | 'running'
    | 'sent'
    | 'lease_lost'
    | 'host_unreachable'
    | 'reconnected'
    | 'cancel_requested'
    | 'ended';
  worker?: string;
}

interface JobTimes {
  created: string;
  started: string | null;
  finished: string | null;
  worker: string | null;
}

/** What a job did for a time: it waits for a worker, a worker has it, or its host is unreachable. */
export type Phase = 'waiting' | 'running' | 'unreachable';

export interface Segment {
  phase: Phase;
  /** In ms. */
  from: number;
  to: number;
  worker: string | undefined;
}

const BEGINS: Partial<Record<HistoryEvent['event'], Phase>> = {
  queued: 'waiting',
  claimed: 'running',
  running: 'running',
  lease_lost: 'waiting',
  host_unreachable: 'unreachable',
  reconnected: 'running',
};

/** What a record alone tells, until the history is there. */
export function eventsOfRecord({ created, started, finished, worker }: JobTimes): HistoryEvent[] {
  return [
    { time: created, event: 'queued' as const },
    ...(started ? [{ time: started, event: 'claimed' as const, worker: worker ?? undefined }] : []),
    ...(finished ? [{ time: finished, event: 'ended' as const }] : []),
  ];
}

/**
 * The phases of a job one after the other, the last one up to its end, or to now. Its record may tell the end, as
 * `finished`, before its history does.
 */
export function toSegments(
  events: HistoryEvent[],
  now: number,
  finished: string | null = null,
): Segment[] {
  const segments: Segment[] = [];
  for (const { time, event, worker } of events) {
    const at = Date.parse(time);
    const last = segments.at(-1);
    if (event === 'ended') {
      if (last) last.to = at;
      return segments;
    }
    // Only its loss names the worker of an attempt that is not the last.
    if (event === 'lease_lost' && last?.phase === 'running') last.worker ??= worker;
    const phase = BEGINS[event];
    if (!phase || (last?.phase === phase && (worker === undefined || last.worker === worker)))
      continue;
    if (last) last.to = at;
    segments.push({ phase, from: at, to: at, worker: phase === 'running' ? worker : undefined });
  }
  const open = segments.at(-1);
  if (open) open.to = Math.max(open.from, finished === null ? now : Date.parse(finished));
  return segments;
}

/** How long a job was in a phase, in ms. */
export const timeIn = (segments: Segment[], phase: Phase): number =>
  segments.filter(one => one.phase === phase).reduce((sum, { from, to }) => sum + to - from, 0);

export interface Attempt {
  worker: string | undefined;
  /** In ms. */
  from: number;
  to: number;
  /** `lost`: its worker was. */
  end: 'lost' | 'open' | 'last';
}

/** Which workers had a job, one after the other, and for how long; its host may have been unreachable meanwhile. */
export function toAttempts(segments: Segment[], isEnded: boolean): Attempt[] {
  const attempts: Attempt[] = [];
  for (const { phase, from, to, worker } of segments) {
    const last = attempts.at(-1);
    if (phase === 'waiting') {
      if (last) last.end = 'lost';
    } else if (last && last.end !== 'lost' && (phase === 'unreachable' || last.worker === worker))
      last.to = to;
    else {
      if (last) last.end = 'lost';
      attempts.push({ worker, from, to, end: isEnded ? 'last' : 'open' });
    }
  }
  return attempts;
}

/** Something went wrong on the way, whatever came of it. */
export const hadTrouble = (events: HistoryEvent[]): boolean =>
  events.some(({ event }) => event === 'lease_lost' || event === 'host_unreachable');
