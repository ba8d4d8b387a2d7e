import type { components } from './schema.ts';

/** The service's codes, the client's own, and those of newer services. */
export type ErrorCode =
  | components['schemas']['Problem']['code']
  | 'answer_required'
  | 'changed'
  | 'foreign_answer'
  | 'no_id'
  | 'no_regular_file'
  | 'no_url'
  | 'not_written'
  | 'other_files'
  | 'unreachable'
  // Not `string`, which would swallow the names.
  | (string & {});

/** A field of a request that was `invalid_input`. */
export interface WrongField {
  field: string;
  problem: string;
}

/** What the service says of an error: the members of a problem document (RFC 9457), and of a failed job's `error`. */
export interface Problem {
  code: ErrorCode;
  /** One sentence for people. */
  detail: string;
  /** What can be done. */
  hint?: string;
  status?: number;
  requestId?: string;
  /** The wrong fields, where the code is `invalid_input`. */
  fields?: WrongField[];
  /** Further members belong to the code. */
  [member: string]: unknown;
}

/** Why a call failed: the service refused it, the job did not succeed, or no answer came. */
export class WindlassError extends Error {
  override readonly name = 'WindlassError';
  /** The HTTP status of the answer; 0 where there was none, and where a job failed. */
  readonly status: number;
  /** A stable word: one of the service's, or `unreachable` where no answer came. */
  readonly code: ErrorCode;
  /** One sentence for people; also the `message`. */
  readonly detail: string;
  /** What can be done, where the service knows. */
  readonly hint: string | undefined;
  /** Finds the request in the service's log. */
  readonly requestId: string | undefined;
  /** The wrong fields of a request, if it was refused for any. */
  readonly fields: WrongField[];
  /** The id of the job that failed. */
  readonly job: string | undefined;
  /** All that the service said of the error. */
  readonly problem: Problem;

  constructor(problem: Problem, { job, cause }: { job?: string; cause?: unknown } = {}) {
    super(problem.detail, cause === undefined ? undefined : { cause });
    this.problem = problem;
    this.status = problem.status ?? 0;
    this.code = problem.code;
    this.detail = problem.detail;
    this.hint = problem.hint;
    this.requestId = problem.requestId;
    this.fields = problem.fields ?? [];
    this.job = job;
  }
}

const FOREIGN =
  'A program before the service said so, such as a proxy. Is the address right, and the service up?';

/** The error of an answer, whose `body` was read. That of a proxy in place of the service is `http_(status)`. */
export function errorOf({ status, statusText, headers }: Response, body: unknown): WindlassError {
  const said: Partial<Problem> = typeof body === 'object' && body !== null ? body : {};
  const message = headers.get('X-Service-Message');
  const isForeign = !(said.code || message);
  return new WindlassError({
    ...said,
    status,
    code: typeof said.code === 'string' ? said.code : `http_${status}`,
    detail:
      (typeof said.detail === 'string' && said.detail) ||
      message ||
      `${`The answer was ${status} ${statusText}`.trimEnd()}.`,
    hint: said.hint ?? headers.get('X-Service-Hint') ?? (isForeign ? FOREIGN : undefined),
    requestId: said.requestId ?? headers.get('X-Request-Id') ?? undefined,
  });
}
