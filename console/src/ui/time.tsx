import { useEffect, useState } from 'preact/hooks';
import { serviceNow } from '../service/clock.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });

/** The present time by the service's clock, which is told again every so many ms. */
export function useNow(everyMs: number): number {
  const [now, setNow] = useState(serviceNow);
  useEffect(() => {
    const timer = setInterval(() => setNow(serviceNow()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

const ofDay = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });
const inUtc = (at: string) => `${at.replace('T', ' ').replace(/(\.\d+)?Z$/, '')} UTC`;

/** A time in the user's zone, a short one without its day; its title has UTC. */
export const Time = ({ at, isShort }: { at: string; isShort?: boolean }) => (
  <time dateTime={at} title={inUtc(at)}>
    {(isShort ? ofDay : exact).format(new Date(at))}
  </time>
);

/** How long ago a time was; its title has the time. */
export function Ago({ at }: { at: string }) {
  const now = useNow(10 * SECOND);
  const title = `${exact.format(new Date(at))} (${inUtc(at)})`;
  return (
    <time dateTime={at} title={title}>
      {formatAgo(now - Date.parse(at))}
    </time>
  );
}

/** When a token was used last, of which the service keeps the hour: nobody used it before it was made. */
export function Used({ token: { used, created } }: { token: { used: string; created: string } }) {
  const now = useNow(MINUTE);
  if (now - Date.parse(used) < HOUR) return <>within the last hour</>;
  return <Ago at={used < created ? created : used} />;
}

function formatAgo(ms: number): string {
  if (ms < 10 * SECOND) return 'just now';
  if (ms < MINUTE) return `${Math.floor(ms / (10 * SECOND)) * 10} seconds ago`;
  if (ms < HOUR) return relative.format(-Math.floor(ms / MINUTE), 'minute');
  if (ms < DAY) return relative.format(-Math.floor(ms / HOUR), 'hour');
  return relative.format(-Math.floor(ms / DAY), 'day');
}

/** How long it took, or takes so far. */
export function Duration({ from, to }: { from: string; to: string | null }) {
  const now = useNow(SECOND);
  const ms = Math.max(0, (to === null ? now : Date.parse(to)) - Date.parse(from));
  return <span class="duration">{formatDuration(ms, to === null)}</span>;
}

/** Such as 0.4 s, 12 s, 3 min 5 s, 2 h 10 min; in whole seconds while it still runs. */
export function formatDuration(ms: number, isRunning = false): string {
  if (ms < 10 * SECOND && !isRunning) return `${(ms / SECOND).toFixed(1)} s`;
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min ${Math.floor((ms % MINUTE) / SECOND)} s`;
  if (ms < DAY) return `${Math.floor(ms / HOUR)} h ${Math.floor((ms % HOUR) / MINUTE)} min`;
  return `${Math.floor(ms / DAY)} d ${Math.floor((ms % DAY) / HOUR)} h`;
}
