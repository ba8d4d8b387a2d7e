/** Files of test/ that run on shared stacks when all tests run: see runTogether(). Each still runs by itself when it is named. */
export const GROUPS = {
  http: [
    'http/surface',
    'http/input',
    'http/polls',
    'projects/values',
    'http/broken-bodies',
    'http/if-match-deletes',
    'remote/refused-login',
  ],
  projects: [
    'projects/projects',
    'access/tokens',
    'projects/cache',
    'uploads/parts',
    'uploads/copies',
  ],
  work: ['jobs/commands', 'jobs/videos', 'uploads/tables', 'remote/hostile-hosts', 'remote/browse'],
  unlimited: ['access/access-matrix/access-matrix', 'http/hostile-json', 'access/revocation'],
  remote: [
    'remote/host-outages',
    'remote/disks',
    'remote/channels',
    'remote/host-keys',
    'remote/without-proc',
    'remote/finished-runs-after-session',
  ],
} as const;
