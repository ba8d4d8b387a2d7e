/** A test by its file and its name; a name that the file makes of a template is given as it comes out. */
export interface Elsewhere {
  file: string;
  test: string;
}

const held = (file: string, test: string): Elsewhere => ({ file: `test/${file}.test.ts`, test });

/**
 * Promises that one service at rest cannot show: they take a time-out, a limit that would be in the way of the other
 * cases, or a server that is unreachable. Each with the tests that hold it.
 */
export const ELSEWHERE: Record<string, Elsewhere[]> = {
  'Everywhere: 408 for a request that comes too slowly': [
    held('http/endless-bodies', 'one that drips is 408, and its connection ends'),
    held('http/endless-bodies', 'header fields that drip are 408, and their connection ends'),
  ],
  'Everywhere: 429 for too many open sessions or jobs': [
    held('access/access', 'more sessions or open jobs than allowed are 429, for this user alone'),
  ],
  'Everywhere: 429 for too many requests a second; LIMIT_REQUESTS, 0 lifts one': [
    held('http/limits', 'requests of one user: 429, and nobody else pays for it'),
    { file: 'api/middleware/limit-requests.test.ts', test: '0 lifts the limit' },
  ],
  'Everywhere: 429 for too many answers that are open for long': [
    held(
      'http/open-streams',
      'one user has LIMIT_STREAMS of them: one more is 429, for that user alone',
    ),
  ],
  'Everywhere: 429 for too many failed logins': [
    held(
      'access/login',
      'failed logins lock the account from that address alone, in every process',
    ),
  ],
  'Everywhere: the same cost for an unknown name': [
    held(
      'access/revocation',
      'a name that nobody has costs a wrong login as much as one that somebody has',
    ),
  ],
  'Everywhere: 503 with Retry-After while a dependency is down': [
    held(
      'operations/outages',
      'MinIO is stopped: 503 for what needs it, all else goes on, and nothing is lost',
    ),
    held(
      'remote/remote-sessions',
      'without a remote worker what waits for one is 503, and a launch is accepted',
    ),
  ],
  'Everywhere: the queue is none: work is accepted without it': [
    held(
      'operations/outages',
      'Redis is stopped: work is accepted, and done at the latest when it is back',
    ),
  ],
  'Everywhere: 507 for a full project or disk': [
    held(
      'http/limits',
      'a part, before its body is sent where its length is told, else when it has come',
    ),
    held('http/limits', 'a part that the disk has no room for: 507, before its body is read'),
  ],
  'Everywhere: Secure when the site is https; PUBLIC_URL, TRUST_PROXY': [
    held(
      'access/login',
      'a page of another origin can neither write by cookie, nor log anybody in',
    ),
    {
      file: 'api/http/same-origin.test.ts',
      test: 'cookies are Secure where clients come by https',
    },
    {
      file: 'api/http/same-origin.test.ts',
      test: 'PUBLIC_URL alone says which origin is ours',
    },
    {
      file: 'api/http/same-origin.test.ts',
      test: 'a trusted proxy says how the client came, any other does not',
    },
  ],
  'Everywhere: a verified Basic password is remembered, argon2id is paid once': [
    held('access/login', 'many requests at once with one new password are one try'),
    held('access/login', 'a remembered password is good whatever failed, and a success forgives'),
  ],
  'Everywhere: what is revoked is seen by all processes': [
    held(
      'access/revocation',
      'every process hears of it soon: tokens, passwords, users, logins, roles',
    ),
  ],
  'Running it: settings, ADMIN_PASSWORD made up and printed once, the line of the start': [
    held(
      'operations/start',
      'the first start makes up a password and prints it once; SIGTERM and SIGINT end it with 0',
    ),
    held(
      'operations/start',
      'that make no sense are all named at once, one line each, without their values',
    ),
  ],
  'Running it: windlass keys new; windlass migrate, races are safe': [
    held('operations/start', 'keys new prints settings that work together, and others each time'),
    held(
      'operations/restart',
      'migrate may run several times at once, and makes one administrator',
    ),
  ],
  'Running it: process.title, found in ps': [
    held(
      'operations/fleet',
      'is two of each line of the Procfile, found by name in ps, and no Postgres',
    ),
  ],
  'Running it: any process may be killed': [
    held('operations/supervision', 'windlass-worker killed is back, and commands run again'),
    held('operations/supervision', 'postgres killed is back, and commands run again'),
    held(
      'operations/supervision',
      'the supervisor killed: within 15 s nothing runs; the next start goes on with what ran',
    ),
  ],
  'Hosts, users, tokens: a token that has expired': [
    held('access/tokens', 'an expired token is refused and listed no more'),
  ],
  'Remote sessions: Windlass writes under ~/.windlass alone': [
    held(
      'remote/disks',
      'nothing of ours is left anywhere but the agent, whatever was done and however it ended',
    ),
  ],
  'Remote sessions: opened with a password; with a private key and its passphrase': [
    held(
      'remote/accounts',
      'bash: a password, a command of its own, and nothing left but the agent',
    ),
    held('http/records', 'a session is opened with an encrypted private key'),
  ],
  'Remote sessions: a connection is tried for so long, and no longer': [
    {
      file: 'workers/ssh/connect.test.ts',
      test: 'a host that takes connections and says nothing is an error, and so is one silent at the login',
    },
  ],
  'Remote sessions: 500 Start-up files print.': [
    held('remote/accounts', 'start-up files that print are named, with and without an agent'),
  ],
  'Remote sessions: the time-out counts from the end of the last job': [
    held(
      'access/access',
      'is over at the moment it said; a job in it, or a file that is sent there, puts that off',
    ),
  ],
  'Remote sessions: the sealed credential is erased once its jobs are stopped, after 10 min at most':
    [
      held('remote/remote-sessions', 'the credential of a session that was ended is erased'),
      held(
        'remote/remote-sessions',
        'where its host is unreachable the credential is kept to clean up there, for ten minutes',
      ),
    ],
  'Remote sessions: launches held by a process that stops are answered 202': [
    held(
      'operations/restart',
      'answers held launches 202 when it stops, and brings the command to its end afterwards',
    ),
  ],
  'Remote sessions: worker_lost': [
    held(
      'remote/worker-lost',
      'fails as worker_lost after twenty without any progress; it was never run',
    ),
  ],
  'Remote sessions: remote_disk_full': [
    held(
      'remote/disks',
      'a full disk: the run ends as remote_disk_full with its output; with room again all works',
    ),
  ],
  'Remote sessions: agent problems': [
    {
      file: 'workers/host-agent/faults.test.ts',
      test: 'a run whose supervisor was killed goes on, also while nobody follows it',
    },
  ],
  'Jobs: a result is kept 24 h after the job, then removed': [
    held(
      'projects/pending-deletions',
      'marks objects without a reference or an open job, and deletes them an hour later',
    ),
  ],
  'Uploads: idle upload sessions expire': [
    held('uploads/uploads', 'an idle upload ends, and one that has ended loses its parts'),
  ],
  'Projects: objects of a deleted project are removed afterwards': [
    held(
      'projects/deleted-projects',
      'removes all rows of a deleted project, schedules its objects for deletion, and keeps another project',
    ),
  ],
};
