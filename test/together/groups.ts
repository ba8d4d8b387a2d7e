/** Files of test/ that run on shared stacks when all tests run: see runTogether(). Each still runs by itself when it is named. */
export const GROUPS = {
  http: [
    'http',
    'http-input',
    'http-polls',
    'values',
    'broken-bodies',
    'if-match-deletes',
    'remote-refused',
  ],
  projects: ['projects', 'tokens', 'cache', 'upload-parts', 'upload-copies'],
  work: ['commands', 'videos', 'tables', 'hostile-remote', 'browse'],
  unlimited: ['matrix/matrix', 'hostile-json', 'revocation'],
  remote: [
    'remote-outages',
    'remote-disks',
    'remote-channels',
    'remote-keys',
    'remote-without-proc',
    'remote-forget-leftovers',
  ],
} as const;
