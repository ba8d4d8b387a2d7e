import { readConfig } from '../../shared/settings/config.ts';
import type { WorkerContext } from '../../workers/context.ts';
import { JobGroups } from '../../workers/engine/job-groups.ts';

type Given = Pick<WorkerContext, 'id' | 'log' | 'database' | 'notifications' | 'metrics'> &
  Partial<WorkerContext>;

/** A worker of the test's own process. What the test does not give it, and it cannot do without, throws at its first use. */
export function makeWorkerContext(given: Given): WorkerContext {
  return {
    config: readConfig({}),
    stopping: new AbortController().signal,
    groups: new JobGroups(given),
    claims: absent('claims'),
    sessions: absent('sessions'),
    finishedRuns: absent('finishedRuns'),
    objects: absent('objects'),
    freeSpace: absent('freeSpace'),
    queues: absent('queues'),
    ...given,
  };
}

const absent = (name: string) =>
  new Proxy(
    {},
    {
      get: () => {
        throw new Error(`the test gave its worker no ${name}`);
      },
    },
  ) as never;
