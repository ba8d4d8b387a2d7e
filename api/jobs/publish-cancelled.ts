import type { ApiContext } from '../context.ts';

/** Tells the workers, and whoever waits, of jobs that were asked to end. */
export function publishCancelled({ notifications }: ApiContext, jobs: string[]): void {
  for (const id of jobs) {
    notifications.publish('cancel', id);
    notifications.publish('job', id);
  }
}
