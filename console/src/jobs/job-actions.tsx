import { WindlassError } from '@windlass/client';
import { Link, useLocation } from 'wouter-preact';
import { isEnded, isOwn, type ListedJob, useCancel, useRunAgain } from '../service/jobs.ts';
import { Button } from '../ui/button.tsx';
import { AgainIcon, StopIcon } from '../ui/icons.tsx';
import { Problem } from '../ui/problem.tsx';

/** Kinds that can be asked for again. */
const AGAIN = ['command', 'batch', 'video', 'parse'];

/** The parts of an upload are kept while they are not parsed. */
const canRunAgain = ({ kind, state }: ListedJob) =>
  AGAIN.includes(kind) && !(kind === 'parse' && state === 'succeeded');

/** What can be done with a job as it is. */
export function JobActions({ job }: { job: ListedJob }) {
  const [, navigate] = useLocation();
  const cancel = useCancel(job.id);
  const again = useRunAgain(job.id);
  const error = cancel.error ?? again.error;
  return (
    <div class="row">
      {!isEnded(job) && (
        <Button
          look="danger"
          disabled={cancel.isPending || cancel.isSuccess}
          onClick={() => cancel.mutate()}
        >
          <StopIcon />
          {cancel.isPending || cancel.isSuccess ? 'Cancelling …' : 'Cancel'}
        </Button>
      )}
      {isEnded(job) && isOwn(job) && canRunAgain(job) && (
        <Button
          disabled={again.isPending}
          title="Starts the same as a new job"
          onClick={() => again.mutate(undefined, { onSuccess: id => navigate(`/jobs/${id}`) })}
        >
          <AgainIcon />
          Run again
        </Button>
      )}
      {error && (
        <Problem error={error}>
          {error instanceof WindlassError && error.code === 'session_not_found' && (
            <Link href="/run">Log in there, and run it anew</Link>
          )}
        </Problem>
      )}
    </div>
  );
}
