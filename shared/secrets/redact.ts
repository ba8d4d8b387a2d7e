import { splitHosts } from '../database/host-urls.ts';

/**
 * Removes secrets from log lines: by the name of a field at any depth, by the shape of a text (a URL with a password, a
 * private key, an Authorization header), and by values that the process knows. pino's own `redact` takes fixed paths
 * only.
 */
const CENSOR = '[redacted]';

/** Names of fields whose values are never logged; matched without case, `-` and `_`. */
const SECRET_FIELD =
  /^(authorization|proxyauthorization|cookie|setcookie|sealed|\w*password(hash)?|\w*passphrase|privatekey|\w*token|\w*secret|\w*secretkey|secretaccesskey|sealprivatekeys?|serviceauth|database(direct)?url|redisurl|params|parameters|args)$/;

/** Fields of an error that are logged; others may quote rows, parameters or commands to Redis. */
const ERROR_FIELDS = [
  'code',
  'hint',
  'errno',
  'syscall',
  'address',
  'port',
  'severity',
  'schema_name',
  'table_name',
  'column_name',
  'constraint_name',
  'routine',
  'statusCode',
] as const;

/** Larger than anything that is logged on purpose. */
const MAX_DEPTH = 6;
const MAX_ITEMS = 200;

/** A copy of a value for the log, without secrets and with errors as plain objects. */
export function redact(value: unknown, depth = 0): unknown {
  if (value instanceof Error) return describeError(value, depth);
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Date) return value;
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `${value.byteLength} bytes`;
  if (depth >= MAX_DEPTH) return '…';
  if (Array.isArray(value)) return value.slice(0, MAX_ITEMS).map(item => redact(item, depth + 1));
  if (value instanceof Map || value instanceof Set) return `${value.size} entries`;
  const copy: Record<string, unknown> = {};
  for (const [key, item] of Object.entries(value).slice(0, MAX_ITEMS)) {
    const isSecret = SECRET_FIELD.test(key.toLowerCase().replace(/[-_]/g, ''));
    copy[key] = isSecret && item !== undefined && item !== null ? CENSOR : redact(item, depth + 1);
  }
  return copy;
}

/** Name, message, stack, codes and causes of an error, without the parameters of a failed statement. */
function describeError(error: Error, depth: number): unknown {
  if (depth >= MAX_DEPTH) return '…';
  const message = withoutParameters(error.message);
  const fields: Record<string, unknown> = { type: error.name, message };
  // A stack begins with the original message.
  const stack = error.stack?.replace(error.message, () => message) ?? '';
  if (message === error.message || !stack.includes(PARAMETERS)) fields.stack = stack;
  for (const field of ERROR_FIELDS) {
    const value: unknown = Reflect.get(error, field);
    if (typeof value === 'string' || typeof value === 'number') fields[field] = value;
  }
  if (error.cause !== undefined) fields.cause = redact(error.cause, depth + 1);
  if (error instanceof AggregateError) fields.errors = redact(error.errors, depth + 1);
  return fields;
}

const PARAMETERS = '\nparams: ';

/** drizzle appends the values of all parameters to the message of a failed query. */
function withoutParameters(message: string): string {
  const at = message.startsWith('Failed query: ') ? message.indexOf(PARAMETERS) : -1;
  return at < 0 ? message : message.slice(0, at);
}

/** Shapes of secrets. Every repetition is bounded, so that long lines take linear time. */
const SHAPES: [RegExp, string | typeof hideCredentials][] = [
  [/(\b[a-z][a-z0-9+.-]{0,20}:\/\/[^\s"/:@]{0,300}:)[^\s"/@]{1,600}@/gi, `$1${CENSOR}@`],
  [/-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----(?:[^-"]|-(?!----)){0,40000}/g, `${CENSOR} `],
  [/\b(Basic|Bearer) +[\w+/.~-]{20,4096}={0,2}/g, `$1 ${CENSOR}`],
  [/\b(basic) +([a-z\d+/]{4,4096}={0,2})/gi, hideCredentials],
  [/\bwdl_[\w-]{20,200}/g, CENSOR],
  [/\bwlk_[\w-]{20,8192}(\.[\w-]{0,64})?/g, CENSOR],
  [/\bwhsec_[\w+/]{20,200}={0,2}/g, CENSOR],
  [/\bserviceauth=[\w%.~+/=-]{1,4096}/g, `serviceauth=${CENSOR}`],
];

/** Removes from a finished line the shapes of secrets and these known values. */
export function createScrubber(secrets: readonly string[]): (line: string) => string {
  const known = [...new Set(secrets.flatMap(spellings))].sort((a, b) => b.length - a.length);
  return line => {
    let text = line;
    for (const secret of known) if (text.includes(secret)) text = text.replaceAll(secret, CENSOR);
    // Two overloads: TypeScript picks none for a union.
    for (const [shape, replacement] of SHAPES)
      text =
        typeof replacement === 'string'
          ? text.replace(shape, replacement)
          : text.replace(shape, replacement);
    return text;
  };
}

/** Any word follows "basic" in ordinary text: credentials are what decodes to printable text with a colon. */
function hideCredentials(found: string, scheme: string, encoded: string): string {
  const text = encoded.length % 4 === 0 ? Buffer.from(encoded, 'base64').toString() : '';
  const isPrintable = !/[\p{Cc}\ufffd]/u.test(text);
  return isPrintable && text.includes(':') ? `${scheme} ${CENSOR}` : found;
}

/** As it is, as JSON escapes it, and as a URL does. */
function spellings(secret: string): string[] {
  // Anything shorter would cut holes into ordinary words.
  if (secret.length < 6) return [];
  return [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)];
}

/** Deletes the variables that hold secrets from an environment, so that child processes do not inherit them. */
export function removeSecrets(env: Record<string, string | undefined>): void {
  for (const [name, value] of Object.entries(env))
    if (isSecretSetting(name, value)) delete env[name];
}

/** Whether this value of a setting is a secret, or holds one. */
export const isSecretSetting = (name: string, value: string | undefined): boolean =>
  listSecrets({ [name]: value }).some(secret => secret !== '');

/** The secrets among a process's settings, including those in URLs. */
export function listSecrets(settings: Record<string, unknown>): string[] {
  const secrets: string[] = [];
  for (const [name, value] of Object.entries(settings)) {
    if (typeof value !== 'string') continue;
    if (/PASSWORD|SECRET|PRIVATE/.test(name)) secrets.push(value, ...value.split(','));
    for (const secret of secretsOfUrl(value)) secrets.push(secret, decode(secret));
  }
  return secrets;
}

/**
 * Hides the password, and parameters with secret names. A text that looks like a URL with a password and is no URL is
 * hidden whole.
 */
function secretsOfUrl(text: string): string[] {
  if (!/^[a-z][a-z\d+.-]*:\/\//i.test(text)) return [];
  const [first = ''] = splitHosts(text);
  if (!URL.canParse(first)) return text.includes('@') ? [text] : [];
  const { password, searchParams } = new URL(first);
  const named = [...searchParams].filter(([name]) => /pass|secret|token|key/i.test(name));
  return [password, ...named.map(([, value]) => value)].filter(secret => secret !== '');
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
