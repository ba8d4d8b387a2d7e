import { S3Error } from 'minio';
import { unavailable, WindlassError } from '../errors/errors.ts';
import { findTlsFault } from '../process/tls-faults.ts';
import { MissingObject } from './object-store.ts';

/** No byte went either way for longer than the request allows, while the server was expected to act. */
export class StallTimeout extends Error {
  constructor(ms: number) {
    super(`the object store made no progress for ${ms} ms`);
    this.name = 'StallTimeout';
  }
}

/**
 * S3 and MinIO codes for a full disk or an exhausted quota. MinIO may answer NoSuchUpload when the disk had no room for
 * the metadata of an upload.
 */
const STORAGE_FULL = [
  'XMinioStorageFull',
  'XMinioAdminBucketQuotaExceeded',
  'QuotaExceeded',
  'NoSuchUpload',
];
const MISSING = ['NoSuchKey', 'NotFound', 'NoSuchBucket'];
const ACCESS_DENIED = [
  'AccessDenied',
  'InvalidAccessKeyId',
  'SignatureDoesNotMatch',
  'AuthorizationHeaderMalformed',
  'RequestTimeTooSkewed',
  'AllAccessDisabled',
  'AccountProblem',
];
/** Node's codes for a network or server that cannot be reached. */
const UNREACHABLE = [
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
];

/** The error code in an S3 server's answer, or an empty string. */
export function s3Code(error: unknown): string {
  return error instanceof S3Error ? String(error.code ?? '') : '';
}

export const isMissing = (error: unknown) => MISSING.includes(s3Code(error));

/** Whether the connection broke, so that the request may succeed on another one. */
export function isConnectionReset(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ECONNRESET' || code === 'EPIPE';
}

/** Returns the WindlassError for a failed request, or the error itself; `status` is the answer's, where there was one. */
export function translateS3Error(error: unknown, status?: number): unknown {
  const code = s3Code(error);
  if (error instanceof WindlassError) return error;
  if (isFull(error, status)) {
    return new WindlassError('insufficient_storage', {
      detail: 'The object store is full.',
      hint: 'Free some space or ask the administrator to.',
      cause: error,
    });
  }
  if (ACCESS_DENIED.includes(code)) {
    return storeUnavailable(
      `the object store refuses the credentials (${code}); see S3_ACCESS_KEY and S3_SECRET_KEY.`,
      error,
    );
  }
  if (code === 'NoSuchBucket') return bucketGone(error);
  if (isMissing(error)) return new MissingObject({ cause: error });
  const tls = findTlsFault(error);
  if (tls)
    return storeUnavailable(
      `the object store cannot be used: ${tls.reason}. ${tls.remedy}.`,
      error,
    );
  if (isUnreachable(error) || isServerError(status))
    return storeUnavailable('the object store cannot be reached.', error);
  // An S3 server names a code. A port of https answers so over http, and so does what is no S3 server.
  if (error instanceof S3Error && code === '')
    return storeUnavailable(
      `what S3_ENDPOINT names gives no answer of an S3 server (status ${status}). Is its scheme right, http:// or https://?`,
      error,
    );
  return error;
}

export const bucketGone = (cause: unknown) =>
  storeUnavailable('the bucket of the object store is gone.', cause);

/** Like translateS3Error(), for check(), which has to say in one line why the store cannot be used. */
export function translateCheckError(error: unknown, status?: number): unknown {
  const explained = translateS3Error(error, status);
  if (explained instanceof WindlassError && explained.code === 'unavailable') return explained;
  const said = s3Code(error) || describeThrown(error);
  return storeUnavailable(`the object store cannot be used (${said}); see S3_ENDPOINT.`, error);
}

function describeThrown(error: unknown): string {
  if (!(error instanceof Error)) return 'no answer';
  return (error as NodeJS.ErrnoException).code ?? error.name;
}

function isFull(error: unknown, status: number | undefined): boolean {
  if (STORAGE_FULL.includes(s3Code(error)) || status === 507) return true;
  // MinIO repeats the operating system's message where the disk fills up during a write.
  return error instanceof S3Error && /no space left|quota exceeded/i.test(error.message);
}

function isUnreachable(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return error instanceof StallTimeout || (code !== undefined && UNREACHABLE.includes(code));
}

/** Whether the server answers, but cannot serve the request now. */
function isServerError(status: number | undefined): boolean {
  return status !== undefined && (status >= 500 || status === 408 || status === 429);
}

const storeUnavailable = (what: string, cause: unknown) =>
  unavailable(what, 'Try again in a few seconds.', 2, cause);
