import { Redis } from 'ioredis';
import type { Config } from '../../shared/config.ts';
import { openObjectStore } from '../../shared/storage/open.ts';
import { errnoOf, StartError } from '../start-error.ts';

const PATIENCE_MS = 5_000;

/**
 * Asks the Redis and the object store of the settings once, where they are set: a wrong address or password is told at the
 * start. Later their absence is waited out. Throws StartError that names the server, never a secret.
 */
export async function checkServers(config: Config): Promise<void> {
  if (config.REDIS_URL) await checkRedis(config.REDIS_URL);
  if (config.S3_ENDPOINT) await checkStore(config, config.S3_ENDPOINT);
}

async function checkRedis(url: string): Promise<void> {
  const { host } = new URL(url);
  let why = 'no answer';
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: PATIENCE_MS,
    commandTimeout: PATIENCE_MS,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  // The reason comes here; the rejected promise says only that the connection is closed.
  redis.on('error', error => {
    why = describe(error);
  });
  try {
    await redis.connect();
    await redis.ping();
  } catch (error) {
    const said = error instanceof Error ? error.message : '';
    if (/NOAUTH|WRONGPASS|NOPERM|invalid password/i.test(`${said} ${why}`)) {
      throw new StartError(`The Redis at ${host} refuses the login.`, {
        hint: 'Correct REDIS_URL.',
        cause: error,
      });
    }
    throw new StartError(`The Redis at ${host} cannot be reached (${why}).`, {
      hint: 'Start it, or correct REDIS_URL.',
      cause: error,
    });
  } finally {
    redis.disconnect();
  }
}

async function checkStore(config: Config, endpoint: string): Promise<void> {
  const { host } = new URL(endpoint);
  try {
    await (await openObjectStore(config)).check();
  } catch (error) {
    const refusal = findRefusal(error);
    if (refusal) {
      throw new StartError(`The object store at ${host} refuses the access key (${refusal}).`, {
        hint: 'Correct S3_ACCESS_KEY, S3_SECRET_KEY and S3_BUCKET.',
        cause: error,
      });
    }
    throw new StartError(`The object store at ${host} cannot be used (${describe(error)}).`, {
      hint: 'Start it, or correct S3_ENDPOINT and the other S3_ settings.',
      cause: error,
    });
  }
}

/** S3's words for credentials that it does not know or that may not do this. */
const REFUSALS =
  /^(AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch|AllAccessDisabled|Forbidden)$/;

function findRefusal(error: unknown): string | undefined {
  for (let e: unknown = error; e instanceof Error; e = e.cause) {
    const code = errnoOf(e);
    if (code && REFUSALS.test(code)) return code;
  }
  return undefined;
}

/** The innermost cause's code, else its words, in one line. */
function describe(error: unknown): string {
  let inner: unknown = error;
  while (inner instanceof Error && inner.cause instanceof Error) inner = inner.cause;
  const code = errnoOf(inner);
  if (code) return code;
  return (inner instanceof Error ? inner.message : String(inner)).replaceAll(/\s+/g, ' ');
}
