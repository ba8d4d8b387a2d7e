import {
  describeOutage,
  isDatabaseDown,
  isDatabaseFull,
  isDeadlock,
  sqlState,
} from '../../shared/database/connect.ts';
import { unavailable, WindlassError } from '../../shared/errors/errors.ts';
import { invalidInput } from './validate.ts';

/** The WindlassError of anything that a handler threw; `internal` where nothing says more. */
export function toWindlassError(error: unknown): WindlassError {
  if (error instanceof WindlassError) return error;
  if (isDatabaseFull(error)) {
    return new WindlassError('insufficient_storage', {
      detail: 'The disk of the database is full. Nothing was changed.',
      hint: 'Ask an administrator to make room on it, then try again.',
      cause: error,
    });
  }
  if (isDatabaseDown(error)) {
    return unavailable(`${describeOutage(error)}.`, 'Try again in a few seconds.', 2, error);
  }
  if (isDeadlock(error)) {
    return unavailable(
      'a deadlock with another request.',
      'Try again. Nothing was changed.',
      1,
      error,
    );
  }
  // PostgreSQL's text has no NUL. Any field of the request may hold it.
  if (sqlState(error) === '22021') {
    return invalidInput(
      [{ field: 'request', problem: 'holds a NUL character' }],
      'Remove it: stored text cannot hold a NUL.',
    );
  }
  return fromBodyParser(error) ?? new WindlassError('internal', { cause: error });
}

const wrongBody = (problem: string, hint: string) =>
  invalidInput([{ field: 'body', problem }], hint);

/** Errors of Express and body-parser have a type or a status. */
function fromBodyParser(error: unknown): WindlassError | undefined {
  const { type, status, limit, setting } = error as {
    type?: string;
    status?: number;
    limit?: number;
    /** See withSetting(). */
    setting?: string;
  };
  switch (type) {
    case 'entity.too.large':
      return new WindlassError('payload_too_large', {
        detail: `The body is larger than ${limit} bytes.`,
        hint: setting
          ? `Send a smaller body. ${setting} (${limit}) sets the limit.`
          : `Send a smaller body: it may have ${limit} bytes.`,
      });
    case 'parameters.too.many':
      return wrongBody('has too many fields', 'Send only the documented fields.');
    case 'entity.parse.failed':
      return wrongBody('is not JSON', 'Send JSON in UTF-8.');
    case 'body.not_utf8':
      return wrongBody('is not UTF-8', 'Send JSON in UTF-8.');
    case 'body.too_deep':
      return wrongBody(
        `is nested more than ${limit} deep`,
        `Send a flatter value. LIMIT_JSON_DEPTH (${limit}) sets the limit.`,
      );
    case 'body.too_many_members':
      return wrongBody(
        `has more than ${limit} members`,
        `Send smaller objects. LIMIT_JSON_MEMBERS (${limit}) sets the limit.`,
      );
    case 'charset.unsupported':
      return new WindlassError('unsupported_media_type', { hint: 'Send JSON in UTF-8.' });
    case 'encoding.unsupported':
      return new WindlassError('unsupported_media_type', {
        hint: 'Send the body without Content-Encoding.',
      });
    case 'request.aborted':
      return new WindlassError('bad_request', {
        detail: 'The request ended early.',
        hint: 'Send it again, with the whole body.',
      });
  }
  if (status !== 400) return undefined;
  return error instanceof URIError
    ? new WindlassError('bad_request', {
        detail: 'The address cannot be decoded.',
        hint: 'Escape the path per RFC 3986.',
      })
    : new WindlassError('bad_request', {
        detail: 'The body cannot be read.',
        hint: 'Check that Content-Length and Content-Encoding are those of the body.',
      });
}
