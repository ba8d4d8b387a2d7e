import { useState } from 'preact/hooks';
import { useLocation } from 'wouter-preact';
import { type ListedJob, useRemoveJob } from '../service/jobs.ts';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/confirm-dialog.tsx';

/** Removes the record of a job that has ended, once that is meant. */
export function RemoveJob({ job }: { job: ListedJob }) {
  const [isAsked, ask] = useState(false);
  const [, navigate] = useLocation();
  const remove = useRemoveJob(job.id);
  return (
    <>
      <Button look="quiet" onClick={() => ask(true)}>
        Remove
      </Button>
      {isAsked && (
        <ConfirmDialog
          title="Remove this job?"
          action={remove.isPending ? 'Removing …' : 'Remove it'}
          isPending={remove.isPending}
          error={remove.error}
          onConfirm={() =>
            remove.mutate(undefined, { onSuccess: () => navigate('/jobs', { replace: true }) })
          }
          onClose={() => ask(false)}
        >
          <p>
            Its record, its output and its result are removed for good. What it made for a project
            stays there: tables, arrays, and videos in a cache.
          </p>
        </ConfirmDialog>
      )}
    </>
  );
}
