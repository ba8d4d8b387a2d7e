import { CREATED, EXPIRES, LATER, pageOf, SESSION } from './ids.ts';

const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIFIqPGFQ1XV3CiF7lZEcyeUiqi2rBg4FW0f0qSsYk2r';
const host = {
  name: 'lab',
  agent: true,
  address: 'lab.example.org',
  port: 22,
  keys: [KEY],
  fingerprints: ['SHA256:Rj2P7rHkq0b1vS6bqVt2l3nVfX5v0wQn0oYb8m4c1dE'],
  private: false,
  users: '*',
  jump: 'gate',
  created: CREATED,
};
const session = {
  sid: SESSION,
  hostname: 'lab',
  username: 'ada',
  agent: true,
  startup: 'once',
  env: ['LANG'],
  state: 'open',
  engines: ['slurm'],
  created: CREATED,
  accessed: LATER,
  expires: EXPIRES,
};

export const SESSION_EXAMPLES = {
  RemoteHost: { hostname: 'hpc', agent: true },
  RemoteHosts: [{ hostname: 'hpc', agent: true }],
  NewHost: { name: 'lab', address: 'lab.example.org', keys: [KEY] },
  HostChanges: { users: ['ada', 'grace'] },
  HostEndpoint: { address: 'lab.example.org' },
  HostKeys: { keys: host.keys, fingerprints: host.fingerprints },
  Host: host,
  HostName: { name: 'lab', agent: true, jump: 'gate' },
  HostPage: pageOf({ name: 'lab', agent: true, jump: 'gate' }),
  NewSession: {
    hostname: 'lab',
    username: 'ada',
    password: 'her password on the host',
    env: { LANG: 'en_GB.UTF-8' },
  },
  OpenedSession: { sid: SESSION },
  LoginChallenge: {
    sid: SESSION,
    challenge: '01KB4T6Q9Q1R3S5T7V9W1X3Y5Z',
    instruction: '',
    prompts: [{ text: 'Verification code: ', echo: false }],
    expires: EXPIRES,
  },
  LoginAnswers: { challenge: '01KB4T6Q9Q1R3S5T7V9W1X3Y5Z', answers: ['123456'] },
  JumpCredential: { username: 'ada', password: 'her password on the jump host' },
  HostCredential: { password: 'her password on the host' },
  Session: session,
  SessionPage: pageOf(session),
};
