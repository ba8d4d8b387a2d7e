/** A sentence for programs: it names a method, a path, a member of JSON or a header. */
const OF_PROGRAMS =
  /\b(?:GET|HEAD|POST|PUT|PATCH|DELETE)\b|\/api\/|["`]|\b(?:If-(?:None-)?Match|Content-\w+|Idempotency-Key|Authorization|Accept)\b/;

const HOSTS = 'An administrator can change that under Operate, Hosts.';
/** What people can do here, by the code and the hint of an error; the first that matches. */
const ADVICE: [error: RegExp, advice: string | undefined][] = [
  [/^unauthorized/, undefined],
  [/^unreachable/, 'Is this computer on the network, and the service up?'],
  [/^session_not_found/, 'Log in to the host again.'],
  [
    /^host_not_allowed .*"private"/,
    `If it is meant to be there, tick the box of private networks. ${HOSTS}`,
  ],
  // The service itself says what can be done about the address of a webhook.
  [/^(host_not_allowed(?!.*WEBHOOK_)|missing_agent)/, HOSTS],
  [/^reconnect_required/, 'Log in to the host again, then repeat it.'],
  [
    /^bad_frames/,
    'Correct those frames, or tick that those that are missing or broken are left out.',
  ],
  [/^idempotency_conflict/, 'Press the button again.'],
  [/^forbidden .*"scope"/, 'Its token only reads.'],
];

const LABELS: Record<string, string> = {
  address: 'Address',
  certificate: 'Certificate',
  command: 'Command',
  cwd: 'Folder',
  env: 'Environment',
  key: 'Key',
  keys: 'Keys',
  name: 'Name',
  passphrase: 'Passphrase',
  password: 'Password',
  port: 'Port',
  privateKey: 'Private key',
  slice: 'Part',
  timeout: 'Time limit',
  url: 'Address',
  username: 'User name',
  users: 'Users',
};

/** What the service says of an error, or of a job that failed. */
interface Refusal {
  code: string;
  detail: string;
  hint?: string;
  /** The wrong fields, where the code is `invalid_input`. */
  fields?: unknown;
}

/** What went wrong, in words for somebody at a page. */
export function describeRefusal({ code, detail, fields }: Refusal): string {
  if (code === 'unauthorized') return 'Your login had ended: this was not done. Do it again.';
  if (code === 'unreachable') return 'No answer came from the service.';
  if (code === 'invalid_input' && Array.isArray(fields) && fields.length > 0)
    return fields.map(describeField).join(' ');
  return detail;
}

/** What can be done at a page about the error. */
export function adviceOf({ code, hint = '' }: Omit<Refusal, 'detail'>): string | undefined {
  const known = ADVICE.find(([pattern]) => pattern.test(`${code} ${hint}`));
  if (known) return known[1];
  const sentences = hint.split(/(?<=[.!?]) (?=[A-Z])/);
  return sentences.filter(each => !OF_PROGRAMS.test(each)).join(' ') || undefined;
}

function describeField({ field, problem }: { field: string; problem: string }): string {
  const label = LABELS[field];
  const text = label ? `${label}: ${problem}` : nameless(field, problem);
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`.replace(/\.\.$/, '.');
}

/** The problem of a field without a label. Where in a list the field is says nothing to people, who see no list. */
const nameless = (field: string, problem: string): string =>
  field === 'body' || field.startsWith('acl.') ? problem : `${field}: ${problem}`;
