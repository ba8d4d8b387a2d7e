import type { Row } from '../row.ts';
import { ACCESS } from './access.ts';
import { ACCOUNTS } from './accounts.ts';
import { ARRAYS } from './arrays.ts';
import { AUTHENTICATION } from './authentication.ts';
import { BATCH } from './batch.ts';
import { CONDITIONS } from './conditions.ts';
import { ENDPOINTS } from './endpoints.ts';
import { REMOTE_ENDPOINTS } from './endpoints-remote.ts';
import { EVERYWHERE } from './everywhere.ts';
import { IDEMPOTENCY } from './idempotency.ts';
import { JOB_ROWS } from './jobs.ts';
import { LAUNCHES } from './launch.ts';
import { LAUNCH_ENDS } from './launch-ends.ts';
import { LISTS } from './lists.ts';
import { POLLS } from './polls.ts';
import { PROJECTS } from './projects.ts';
import { REMOTES } from './remotes.ts';
import { RESOURCES } from './resources.ts';
import { SLYCAT } from './slycat.ts';
import { STATES, TIMED_OUT } from './states.ts';
import { TABLES } from './tables.ts';
import { TUS } from './tus.ts';
import { UPLOADS } from './uploads.ts';
import { VIDEOS } from './videos.ts';

/** Every case. */
export const SECTIONS: Record<string, Row[]> = {
  resources: RESOURCES,
  states: STATES,
  'sessions, videos and launches': REMOTE_ENDPOINTS,
  'parameters, projects, events, uploads and bookmarks': ENDPOINTS,
  authentication: AUTHENTICATION,
  Everywhere: [...EVERYWHERE, ...LISTS, ...CONDITIONS, ...IDEMPOTENCY],
  access: ACCESS,
  'Hosts, users, tokens': ACCOUNTS,
  'Remote sessions': REMOTES,
  launch: [...LAUNCHES, ...LAUNCH_ENDS],
  batch: BATCH,
  Jobs: JOB_ROWS,
  Videos: [...VIDEOS, ...POLLS],
  Uploads: [...UPLOADS, ...TUS],
  'Projects, models, parameters, bookmarks, events': PROJECTS,
  'tables and files': TABLES,
  arrays: ARRAYS,
  'the client of Slycat': SLYCAT,
  'a session that timed out': TIMED_OUT,
};
