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

/** Every case, in the order of the documents. */
export const SECTIONS: Record<string, Row[]> = {
  'interface 2, resources': RESOURCES,
  'interface 3, states': STATES,
  'interface 4.1 to 4.5, remote sessions': REMOTE_ENDPOINTS,
  'interface 4.2, 4.6 to 4.10, the others': ENDPOINTS,
  'interface 5, authentication': AUTHENTICATION,
  'decisions, Everywhere': [...EVERYWHERE, ...LISTS, ...CONDITIONS, ...IDEMPOTENCY],
  'decisions, access': ACCESS,
  'decisions, Hosts, users, tokens': ACCOUNTS,
  'decisions, Remote sessions': REMOTES,
  'decisions, launch': [...LAUNCHES, ...LAUNCH_ENDS],
  'decisions, batch': BATCH,
  'decisions, Jobs': JOB_ROWS,
  'decisions, Videos': [...VIDEOS, ...POLLS],
  'decisions, Uploads': [...UPLOADS, ...TUS],
  'decisions, Projects, models, parameters, bookmarks, events': PROJECTS,
  'decisions, tables and files': TABLES,
  'decisions, arrays': ARRAYS,
  'decisions-more, the public relative': SLYCAT,
  'interface 3, a session that timed out': TIMED_OUT,
};
