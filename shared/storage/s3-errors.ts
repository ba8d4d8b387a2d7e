import { S3Error } from 'minio';
import { WindlassError } from '../errors.ts';

/** The server did not answer, or stopped taking or giving bytes, for longer than the call allows. */
export class StoreSilent extends Error {
  constructor(ms: number) {
    super(`the object store was silent for ${ms} ms`);
    this.name = 'StoreSilent';
  }
}

/**
 * Words of S3 and of MinIO for a full disk or a quota that is used up; the last is what MinIO says now and then of the next
 * part of an upload for whose notes there was no room.
 */
const FULL = [
  'XMinioStorageFull',
  'XMinioAdminBucketQuotaExceeded',
  'QuotaExceeded',
  'NoSuchUpload',
];
const MISSING = ['NoSuchKey', 'NotFound', 'NoSuchBucket'];
const REFUSED = [
  'AccessDenied',
  'InvalidAccessKeyId',
  'SignatureDoesNotMatch',
  'AuthorizationHeaderMalformed',
  'RequestTimeTooSkewed',
  'AllAccessDisabled',
  'AccountProblem',
];
/** What a network or a server that is away shows as; Node's words. */
const AWAY = [
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EPROTO',
];

/** What S3 calls the error, where a server sent one. */
export function s3Code(error: unknown): string {
  return error instanceof S3Error ? String(error.code ?? '') : '';
}

export const isMissing = (error: unknown) => MISSING.includes(s3Code(error));

/** True where the connection broke, so that the same may work on another one. */
export function isCut(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ECONNRESET' || code === 'EPIPE';
}

/** An error of a call as the rest of Windlass knows it; `status` is the answer's, where there was one. */
export function explainS3(error: unknown, status?: number): unknown {
  const code = s3Code(error);
  if (error instanceof WindlassError) return error;
  if (isFull(error, status)) {
    return new WindlassError('insufficient_storage', {
      detail: 'The object store is full.',
      hint: 'Free some space or ask the administrator to.',
      cause: error,
    });
  }
  if (REFUSED.includes(code)) {
    return unavailable(
      `the object store refuses the credentials (${code}); see S3_ACCESS_KEY and S3_SECRET_KEY.`,
      error,
    );
  }
  if (code === 'NoSuchBucket') return unavailable('the bucket of the object store is gone.', error);
  if (isMissing(error))
    return new WindlassError('not_found', { detail: 'There is no such object.', cause: error });
  if (isAway(error) || isTrouble(status))
    return unavailable('the object store cannot be reached.', error);
  return error;
}

/** An error of any kind, for a check that has to say in one line that the store cannot be used. */
export function explainCheck(error: unknown, status?: number): unknown {
  const explained = explainS3(error, status);
  if (explained instanceof WindlassError && explained.code === 'unavailable') return explained;
  const said = s3Code(error) || (error instanceof Error ? error.name : 'no answer');
  return unavailable(`the object store cannot be used (${said}); see S3_ENDPOINT.`, error);
}

function isFull(error: unknown, status: number | undefined): boolean {
  if (FULL.includes(s3Code(error)) || status === 507) return true;
  // MinIO whose disk fills up while it writes passes on what the system says.
  return error instanceof S3Error && /no space left|quota exceeded/i.test(error.message);
}

function isAway(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return error instanceof StoreSilent || (code !== undefined && AWAY.includes(code));
}

/** The server is there and cannot serve now. */
function isTrouble(status: number | undefined): boolean {
  return status !== undefined && (status >= 500 || status === 408 || status === 429);
}

function unavailable(what: string, cause: unknown): WindlassError {
  return new WindlassError('unavailable', {
    detail: `Service unavailable: ${what}`,
    hint: 'Try again in a few seconds.',
    headers: { 'Retry-After': '2' },
    cause,
  });
}
