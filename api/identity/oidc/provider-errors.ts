import { errors as jose } from 'jose';
import * as client from 'openid-client';
import { forbidden, unavailable, WindlassError } from '../../../shared/errors/errors.ts';
import { invalidInput } from '../../http/validate.ts';

/** Errors for those of the libraries, none of whose texts reaches a client: they may quote tokens. */

export const providerUnavailable = (cause: unknown) =>
  unavailable(
    'the identity provider does not answer as OpenID Connect asks.',
    'Try again. An administrator: OIDC_ISSUER must be the issuer in its discovery document, and the log says more.',
    10,
    cause,
  );

export const beginAgain = (field: string, problem: string) =>
  invalidInput([{ field, problem }], 'Begin again: GET /api/login/oidc.');

/** Explains errors of the query that the browser came back with, and of the exchange of its code. */
export function explainCodeRefusal(error: unknown): never {
  // RFC 6749, 4.1.2.1: the provider sent the browser back with an error.
  if (error instanceof client.AuthorizationResponseError)
    throw forbidden(
      `the identity provider refused the login (${word(error.error)}).`,
      'Ask an administrator of the identity provider.',
    );
  // RFC 6749, 5.2.
  if (error instanceof client.ResponseBodyError && error.error === 'invalid_grant')
    throw beginAgain('code', 'was used already, or is of another login');
  if (error instanceof client.ResponseBodyError && error.status < 500)
    throw misconfigured(word(error.error));
  if (error instanceof client.WWWAuthenticateChallengeError) throw misconfigured('invalid_client');
  throw explainBadAnswer(error);
}

/** Explains errors of UserInfo: who was removed a moment ago has no claims. */
export function explainUserInfoRefusal(error: unknown): never {
  if (error instanceof client.WWWAuthenticateChallengeError)
    throw forbidden(
      'the identity provider does not tell who this is.',
      'Ask an administrator of the identity provider.',
    );
  throw explainBadAnswer(error);
}

/** Explains errors of an access token. Throws `unauthorized`. */
export function explainBadToken(error: unknown): never {
  if (error instanceof WindlassError) throw error;
  if (error instanceof jose.JWTExpired) throw badToken('has expired');
  if (error instanceof jose.JWTClaimValidationFailed)
    throw badToken(`has the wrong \`${word(error.claim)}\` for this service`);
  const isOfToken = error instanceof jose.JOSEError && !(error instanceof jose.JWKSInvalid);
  if (isOfToken) throw badToken('is not signed by the identity provider');
  throw providerUnavailable(error);
}

export const badToken = (what: string) =>
  new WindlassError('unauthorized', {
    detail: `the access token ${what}.`,
    hint: 'Get a new one from the identity provider, for the audience of this service.',
    headers: { 'WWW-Authenticate': 'Bearer error="invalid_token"' },
  });

/** Codes of what a provider may answer where it is broken or unreachable. */
const UNREACHABLE = new Set([
  'OAUTH_TIMEOUT',
  'OAUTH_ABORT',
  'OAUTH_RESPONSE_IS_NOT_CONFORM',
  'OAUTH_RESPONSE_IS_NOT_JSON',
  'OAUTH_PARSE_ERROR',
  'OAUTH_KEY_SELECTION_FAILED',
]);

function explainBadAnswer(error: unknown): unknown {
  if (!(error instanceof client.ClientError) || UNREACHABLE.has(error.code ?? ''))
    return providerUnavailable(error);
  if (error.code === 'OAUTH_JWT_TIMESTAMP_CHECK_FAILED')
    return forbidden(
      'the ID token of the identity provider is of another time.',
      'An administrator: the clocks of both must agree within 60 s.',
    );
  return forbidden(
    'the answer of the identity provider is not that of this login.',
    'Begin again: GET /api/login/oidc.',
  );
}

const misconfigured = (code: string) =>
  unavailable(
    `the identity provider refuses this service (${code}).`,
    'An administrator: OIDC_CLIENT_ID, OIDC_CLIENT_SECRET and the callback must be as they are registered there.',
    60,
  );

/** A short code of another's, as it may be shown. */
const word = (text: string) => text.replace(/[^\w.-]/g, '').slice(0, 60);
