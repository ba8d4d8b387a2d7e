/**
 * Every error code with its HTTP status, its title, and whether a retry could succeed; used by API and workers.
 * A title with a final full stop is a reason phrase that the interface quotes.
 */
export const ERRORS = {
  bad_request: { status: 400, title: 'Bad request' },
  invalid_input: { status: 400, title: 'Invalid parameters' },
  agent_required: { status: 400, title: 'Agent required.' },
  shell_unusable: { status: 400, title: 'Shell unusable.' },
  host_unsupported: { status: 400, title: 'Host unsupported.' },
  missing_agent: { status: 400, title: 'Missing agent configuration.' },
  agent_problem: { status: 400, title: 'Remote agent problem.' },
  missing_content_type: { status: 400, title: 'Missing content-type.' },
  missing_images: { status: 400, title: 'Missing images.' },
  unsupported_video_type: { status: 400, title: 'Unsupported content-type.' },
  output_limit: { status: 400, title: 'Output limit reached.' },
  time_limit: { status: 400, title: 'Time limit reached.' },
  cwd_not_found: { status: 400, title: 'Folder not found.' },
  remote_disk_full: { status: 400, title: 'Remote disk full.' },
  bad_frames: { status: 400, title: 'Frames cannot be used.' },
  parse_failed: { status: 400, title: 'The upload cannot be parsed.' },
  upload_incomplete: { status: 400, title: 'Upload incomplete' },
  client_confused: { status: 400, title: 'Client confused' },
  digest_mismatch: { status: 400, title: 'Content digest does not match.' },
  unknown_cache_type: { status: 400, title: 'Unknown cache type' },
  missing_project: { status: 400, title: 'Must specify project id.' },
  missing_cache_key: { status: 400, title: 'Must specify cache key.' },
  video_failed: { status: 400, title: 'Video creation failed.' },
  batch_unavailable: { status: 400, title: 'No batch system.' },
  batch_refused: { status: 400, title: 'The batch system refused the job.' },
  batch_ended: { status: 400, title: 'The batch system ended the job.' },
  wrong_node: { status: 400, title: 'The run is on another node.' },
  unauthorized: { status: 401, title: 'Credentials required.' },
  forbidden: { status: 403, title: 'Forbidden' },
  host_not_allowed: { status: 403, title: 'Host not allowed.' },
  account_unusable: { status: 403, title: 'Account unusable.' },
  remote_authentication_failed: { status: 403, title: 'Remote authentication failed.' },
  not_found: { status: 404, title: 'Not found' },
  session_not_found: { status: 404, title: 'Session does not exist or has timed out.' },
  method_not_allowed: { status: 405, title: 'Method not allowed' },
  request_timeout: { status: 408, title: 'Request timeout' },
  conflict: { status: 409, title: 'Conflict' },
  cancelled: { status: 409, title: 'Cancelled.' },
  challenge_expired: { status: 409, title: 'Challenge expired.' },
  host_changed: { status: 409, title: 'Host changed.' },
  sftp_unavailable: { status: 409, title: 'SFTP unavailable.' },
  host_key_changed: { status: 409, title: 'Host key changed.' },
  idempotency_conflict: { status: 409, title: 'Idempotency-Key used with another request.' },
  reconnect_required: { status: 409, title: 'Reconnect required.' },
  video_not_ready: { status: 409, title: 'Video is not ready.' },
  precondition_failed: { status: 412, title: 'Precondition failed' },
  payload_too_large: { status: 413, title: 'Payload too large' },
  address_too_long: { status: 414, title: 'Address too long' },
  unsupported_media_type: { status: 415, title: 'Unsupported media type' },
  range_not_satisfiable: { status: 416, title: 'Range not satisfiable' },
  locked: { status: 423, title: 'Locked' },
  too_many_requests: { status: 429, title: 'Too many requests' },
  headers_too_large: { status: 431, title: 'Header fields too large' },
  /** A status of tus 1.0. */
  checksum_mismatch: { status: 460, title: 'Checksum mismatch' },
  internal: { status: 500, title: 'Internal error' },
  remote_connection_failed: { status: 500, title: 'Remote connection failed.', retry: true },
  startup_files_print: { status: 500, title: 'Start-up files print.' },
  agent_startup_failed: { status: 500, title: 'Agent startup failed.' },
  outcome_unknown: { status: 500, title: 'Outcome unknown.' },
  worker_lost: { status: 500, title: 'Workers were lost.' },
  unavailable: { status: 503, title: 'Service unavailable', retry: true },
  insufficient_storage: { status: 507, title: 'Insufficient storage' },
} as const satisfies Record<string, { status: number; title: string; retry?: true }>;

export type ErrorCode = keyof typeof ERRORS;

/** The members that a failed job's `error` and a problem document share. */
export interface ErrorRecord {
  code: ErrorCode;
  /** One sentence for people; begins with the title. */
  detail: string;
  /** What the client can do. */
  hint?: string;
}

/** A job's error as its row has it: the code may be another release's, and further members belong to the code. */
export interface StoredError {
  code: string;
  detail: string;
  hint?: string;
  [member: string]: unknown;
}

export const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(ERRORS, code);

interface ErrorOptions {
  detail?: string;
  hint?: string;
  cause?: unknown;
  /** HTTP response headers that belong to this error, such as Retry-After. */
  headers?: Record<string, string>;
  /** Further members of the problem document, such as the wrong fields. */
  extra?: Record<string, unknown>;
}

/** The one error class: a code of the table, a detail that begins with its title, and optionally a hint. */
export class WindlassError extends Error {
  readonly code: ErrorCode;
  readonly hint: string | undefined;
  readonly headers: Record<string, string>;
  readonly extra: Record<string, unknown>;

  constructor(code: ErrorCode, options: ErrorOptions = {}) {
    super(beginWithTitle(ERRORS[code].title, options.detail), { cause: options.cause });
    this.name = 'WindlassError';
    this.code = code;
    this.hint = options.hint;
    this.headers = options.headers ?? {};
    this.extra = options.extra ?? {};
  }

  get status(): number {
    return ERRORS[this.code].status;
  }

  /** Whether the same work may succeed later without any change. */
  get retryable(): boolean {
    return 'retry' in ERRORS[this.code];
  }

  toRecord(): ErrorRecord {
    return { code: this.code, detail: this.message, ...(this.hint ? { hint: this.hint } : {}) };
  }
}

function beginWithTitle(title: string, detail: string | undefined): string {
  if (!detail) return title;
  const bare = title.replace(/\.$/, '');
  return detail.startsWith(bare) ? detail : `${bare}: ${detail}`;
}

/** `what` follows the title in the detail, here and below. */
export const notFound = (what: string, hint: string) =>
  new WindlassError('not_found', { detail: what, hint });

export const conflict = (what: string, hint: string) =>
  new WindlassError('conflict', { detail: what, hint });

export const forbidden = (what: string, hint: string) =>
  new WindlassError('forbidden', { detail: what, hint });

/** For `invalid_input` without `fields`: invalidInput() of the API names them. */
export const invalid = (what: string, hint: string) =>
  new WindlassError('invalid_input', { detail: what, hint });

/** `seconds` is Retry-After. */
export const unavailable = (what: string, hint: string, seconds: number, cause?: unknown) =>
  new WindlassError('unavailable', {
    detail: what,
    hint,
    headers: { 'Retry-After': String(seconds) },
    cause,
  });

/** The record of any thrown value. Any but a WindlassError becomes `internal`; its message is only logged. */
export function toErrorRecord(error: unknown): ErrorRecord {
  if (error instanceof WindlassError) return error.toRecord();
  return { code: 'internal', detail: ERRORS.internal.title };
}
