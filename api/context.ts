import type { Config } from '../shared/config.ts';
import type { Database } from '../shared/database/connect.ts';
import type { Notifications } from '../shared/database/notifications.ts';
import type { JobQueues } from '../shared/jobs/queue.ts';
import type { Logger } from '../shared/log.ts';
import type { ObjectStore } from '../shared/storage/object-store.ts';
import type { ExactBodies } from './exact-json/exact-bodies.ts';
import type { PasswordCheck } from './identity/password-check.ts';
import type { RecentCredentials } from './identity/recent-credentials.ts';
import type { JobWatch } from './jobs/streaming/job-watch.ts';
import type { OpenAnswers } from './jobs/streaming/open-answers.ts';
import type { ApiMetrics } from './monitoring/api-metrics.ts';

/** What an API process is made of; built once by main.ts. */
export interface ApiContext {
  config: Config & { SECRET_KEY: string; SEAL_PUBLIC_KEY: string };
  log: Logger;
  database: Database;
  notifications: Notifications;
  objects: ObjectStore;
  queues: JobQueues;
  jobs: JobWatch;
  /** Requests that wait for a job which they did not start. */
  held: OpenAnswers;
  passwords: PasswordCheck;
  recent: RecentCredentials;
  /** JSON bodies that are kept exactly. */
  bodies: ExactBodies;
  metrics: ApiMetrics;
  /** Aborted when the process is asked to stop: whoever is held waiting is answered now. */
  stopping: AbortSignal;
}
