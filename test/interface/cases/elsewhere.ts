/**
 * Sentences of decisions.md that one service at rest cannot show: they take a time-out, a limit that would be in the way
 * of the other cases, or a server that is away. Each with the test that holds it.
 */
export const ELSEWHERE: Record<string, string> = {
  'Everywhere: 408 for a request that comes too slowly': 'test/endless-bodies.test.ts',
  'Everywhere: 429 for too many open sessions or jobs': 'test/access.test.ts',
  'Everywhere: 429 for too many failed logins, the same cost for an unknown name':
    'test/revocation.test.ts',
  'Everywhere: 503 with Retry-After while a dependency is down': 'test/outages.test.ts',
  'Everywhere: the queue is none: work is accepted without it': 'test/outages.test.ts',
  'Everywhere: 507 for a full project or disk': 'test/limits.test.ts',
  'Everywhere: Secure when the site is https; PUBLIC_URL, TRUST_PROXY': 'test/login.test.ts',
  'Everywhere: a verified Basic password is remembered': 'test/login.test.ts',
  'Running it: settings, the line of the start, processes': 'test/start.test.ts',
  'Everywhere: what is revoked is seen by all processes': 'test/revocation.test.ts',
  'Running it: any process may be killed': 'test/supervision.test.ts',
  'Remote sessions: 500 Start-up files print.': 'test/accounts.test.ts',
  'Remote sessions: launches held by a process that stops are answered 202': 'test/restart.test.ts',
  'Remote sessions: worker_lost': 'test/remote-worker-lost.test.ts',
  'Remote sessions: remote_disk_full': 'test/remote-disks.test.ts',
  'Remote sessions: agent problems': 'workers/remote/agent/agent-faults.test.ts',
  'Uploads: idle upload sessions expire': 'test/uploads.test.ts',
};
