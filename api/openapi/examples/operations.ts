import { CREATED, LATER, pageOf } from './ids.ts';

const worker = {
  id: 'worker-1',
  host: 'node-1',
  kinds: ['command', 'video'],
  slots: { remote: 32, video: 2 },
  running: 3,
  started: CREATED,
  seen: LATER,
  version: '0.1.0',
  draining: false,
};

const setting = {
  name: 'PORT',
  value: '8080',
  from: 'default',
  secret: false,
  meaning: 'port the API listens on',
};

const statistic = {
  time: CREATED,
  kind: 'command',
  succeeded: 41,
  failed: 1,
  cancelled: 0,
  wait: { median: 0.05, p95: 0.2, longest: 0.31 },
  duration: { median: 2, p95: 20, longest: 17.25 },
  waiting: 0,
  running: 3,
};

export const OPERATION_EXAMPLES = {
  ServiceIndex: {
    name: 'Windlass',
    is: 'Hauls long work off the request path.',
    logins: ['password'],
  },
  OpenApiDocument: { openapi: '3.1.0' },
  Health: { ok: true },
  Readiness: {
    ready: true,
    checks: { database: null, objects: null, queue: null, work: null },
    degraded: [],
    workers: 2,
  },
  Version: { version: '0.1.0', commit: null },
  SupportEmail: { address: 'help@example.org', subject: 'Windlass' },
  WorkerList: { items: [worker] },
  Worker: worker,
  WorkerChanges: { draining: true },
  SettingList: { items: [setting] },
  Setting: setting,
  JobStatistics: { since: CREATED, step: 300, items: [statistic] },
  JobStatistic: statistic,
  DurationSpread: statistic.wait,
  AuditPage: pageOf({
    seq: 17,
    time: CREATED,
    user: 'ada',
    address: '192.0.2.7',
    action: 'login',
    target: null,
    outcome: 'ok',
    requestId: '4f6d1c1e-8f0b-4a53-9d57-0c7cf7a4a2c9',
    hash: null,
  }),
};
