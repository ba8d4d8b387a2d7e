/** What the interface is about, in the order in which a user learns it: the tags of the description. */
export const TOPICS = {
  sessions: {
    title: 'Hosts and sessions',
    means: 'Open a session on a host, and use it for what is done there. It ends when it is idle.',
  },
  commands: {
    title: 'Commands',
    means: "Run a command in a session, or submit a job to the host's batch system.",
  },
  jobs: {
    title: 'Jobs',
    means: 'Whatever takes longer than a request is a job: follow it, read its output, cancel it.',
  },
  files: { title: 'Files of a host', means: 'List a directory of the host, and fetch its files.' },
  videos: { title: 'Videos', means: 'Make a video of frames on the host, and show it.' },
  uploads: {
    title: 'Uploads',
    means: 'Send files in parts, or by tus, and have them parsed into a model.',
  },
  tables: {
    title: 'Tables and arrays',
    means:
      'Read, sort, filter, group and plot the rows of a table that was uploaded; read slices of arrays.',
  },
  projects: {
    title: 'Projects',
    means: 'Share work: an access list, a cache of videos, and bookmarks of what a user saw.',
  },
  models: {
    title: 'Models',
    means: 'Keep the parameters, files, tables and arrays of one thing together.',
  },
  accounts: {
    title: 'Accounts',
    means: 'Log in, make tokens for programs, and, as an administrator, manage users.',
  },
  operations: {
    title: 'Operations',
    means: 'See whether the service is well, and what it does for whom.',
  },
} as const satisfies Record<string, { title: string; means: string }>;

export type Topic = keyof typeof TOPICS;
export const TOPIC_NAMES = Object.keys(TOPICS) as Topic[];
