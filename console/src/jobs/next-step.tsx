import { Link } from 'wouter-preact';
import { useSessions } from '../service/hosts.ts';
import { isEnded, isOwn, type Job, type ListedJob, useHistory } from '../service/jobs.ts';
import type { CurrentUser } from '../service/user.ts';
import { useNow } from '../ui/time.tsx';
import { nameOfEngine } from './engines.ts';
import { toSegments } from './history.ts';

/** What begins sooner waits for nothing that is worth a word. */
const SOON_MS = 3_000;

/** Slurm's reasons of a job that waits for others. */
const FOR_ROOM = [null, 'Priority', 'Resources'];

function describeWait({ engine, id, reason }: NonNullable<Job['batch']>): string {
  const system = nameOfEngine(engine);
  if (id === null) return `${system} has not taken it yet.`;
  const waits = `It waits in ${system} as job ${id}`;
  if (FOR_ROOM.includes(reason))
    return `${waits}${reason ? `: ${reason}` : ''}. It starts when there is room.`;
  return `${waits}: ${reason}. It waits until that changes.`;
}

/** What an open job waits for, and what can be done about it. */
export function NextStep({ job, user }: { job: ListedJob; user: CurrentUser }) {
  const now = useNow(1_000);
  const { data: sessions } = useSessions();
  const { data: events = [] } = useHistory(job);
  if (isEnded(job)) return null;
  const own = isOwn(job) ? job : undefined;
  const session = sessions?.find(({ sid }) => sid === own?.session);
  if (session?.state === 'reconnect')
    return (
      <p class="notice" data-look="error">
        The connection to {session.hostname} was lost, and it asks for a new login. What runs there
        goes on. <Link href={`/run?session=${session.sid}`}>Log in again</Link>
      </p>
    );
  if (toSegments(events, now).at(-1)?.phase === 'unreachable')
    return (
      <p class="notice" data-look="error">
        {job.host} cannot be reached just now. What runs there goes on, and it is asked again and
        again.
      </p>
    );
  const message = own?.message;
  if (job.state !== 'queued') return message ? <p class="notice">{message}</p> : null;
  if (own?.batch && !message?.startsWith('waiting:'))
    return <p class="notice">{describeWait(own.batch)}</p>;
  if (!message && now - Date.parse(job.created) < SOON_MS) return null;
  return (
    <p class="notice">
      {message ?? 'It waits until a worker is free.'}{' '}
      {user.administrator && <Link href="/operate/overview">See the workers</Link>}
    </p>
  );
}
