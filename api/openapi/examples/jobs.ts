import { CREATED, JOB, LATER, pageOf, SESSION, VIDEO } from './ids.ts';

const job = {
  id: JOB,
  kind: 'command',
  state: 'succeeded',
  label: 'uname -a',
  name: null,
  progress: null,
  message: null,
  host: 'lab',
  session: SESSION,
  project: null,
  model: null,
  upload: null,
  owner: 'ada',
  worker: 'worker-1',
  created: CREATED,
  started: CREATED,
  finished: LATER,
  result: { returncode: 0 },
  error: null,
  retryOf: null,
  batch: null,
};
const { kind, state, progress, host, owner, worker, created, started, finished } = job;

const output = { stream: 'stdout', offset: 0, time: LATER, text: 'step 1\n' };
const claimed = { time: LATER, event: 'claimed', worker };

const webhook = {
  id: '01KB4TC9E1F3G5H7J9K1M3N5P8',
  url: 'https://receiver.example/ends-of-jobs',
  kinds: ['command'],
  states: null,
  created: CREATED,
  failing: null,
  problem: null,
  disabled: null,
};
const delivery = {
  job: JOB,
  state: 'delivered',
  created: LATER,
  attempts: 1,
  tried: LATER,
  next: null,
  status: 204,
  problem: null,
};

export const JOB_EXAMPLES = {
  NewWebhook: { url: webhook.url, kinds: ['command'] },
  MadeWebhook: { id: webhook.id, secret: 'whsec_the-key-of-the-signatures' },
  Webhook: webhook,
  WebhookPage: pageOf(webhook),
  WebhookDelivery: delivery,
  WebhookDeliveryPage: pageOf(delivery),
  NewCommand: { sid: SESSION, command: 'uname -a', timeout: 60 },
  Repetition: { name: 'once more' },
  Command: {
    command: 'uname -a',
    output: 'Linux lab 6.12.0 #1 SMP x86_64 GNU/Linux\n',
    errors: '',
    returncode: 0,
    job: JOB,
  },
  NewBatchJob: { command: './simulate', nodes: 2, tasks: 64, time: 3_600, queue: 'short' },
  Job: job,
  JobPage: pageOf(job),
  ForeignJob: {
    ...{ id: JOB, kind, state, progress, host, owner, worker, created, started, finished },
    error: null,
  },
  JobCommand: {
    command: 'cd study\n./simulate --steps 100',
    script: null,
    cwd: null,
    env: ['OMP_NUM_THREADS'],
    stdin: 0,
    timeout: 3_600,
    batch: null,
  },
  JobHistory: { items: [{ time: CREATED, event: 'queued' }, claimed] },
  JobHistoryEvent: claimed,
  Identifier: { id: JOB },
  JobEvent: { event: 'output', id: '7-0', data: output },
  JobOutputTime: { offset: 0, time: LATER },
  JobStateEvent: { event: 'state', id: '0-0', data: { state: 'running' } },
  JobProgressEvent: { event: 'progress', id: '0-0', data: { progress: 0.5 } },
  JobOutputEvent: {
    event: 'output',
    id: '7-0',
    data: output,
  },
  JobEndEvent: { event: 'end', id: '7-0-end', data: {} },
  DirectoryListing: {
    path: '/home/ada/frames',
    names: ['001.png', 'old'],
    sizes: [18_311, 4_096],
    types: ['f', 'd'],
    mtimes: [CREATED, CREATED],
  },
  WrittenFile: {
    path: '/home/ada/day.csv',
    size: 1_694_503,
    digest: '47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=',
  },
  NewVideo: {
    'content-type': 'video/mp4',
    images: ['/home/ada/frames/001.png', '/home/ada/frames/002.png'],
    fps: 25,
  },
  StartedVideo: { sid: VIDEO, vsid: VIDEO, job: VIDEO },
  VideoStatus: {
    ok: true,
    ready: false,
    phase: 'encoding',
    message: 'encoding: 120 of 300 frames',
    progress: 0.4,
  },
};
