import { findTlsFault } from '../../shared/process/tls-faults.ts';
import type { Config } from '../../shared/settings/config.ts';
import { openObjectStore } from '../../shared/storage/open.ts';
import { CommandError, errnoOf } from '../command-error.ts';

const TIMEOUT_MS = 5_000;

/**
 * Checks once that the configured Redis and object store answer, so that a wrong address or password fails the start. Later
 * outages are retried. Throws CommandError, which names the server but no secret.
 */
export async function checkServers(config: Config): Promise<void> {
  if (config.REDIS_URL) await checkRedis(config.REDIS_URL);
  if (config.S3_ENDPOINT) await checkStore(config, config.S3_ENDPOINT);
}

async function checkRedis(url: string): Promise<void> {
  const { host } = new URL(url);
  let reason = 'no answer';
  let fault: ReturnType<typeof findTlsFault>;
  const { Redis } = await import('ioredis');
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: TIMEOUT_MS,
    commandTimeout: TIMEOUT_MS,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  // The reason comes as an event; the rejected promise only says that the connection is closed.
  redis.on('error', error => {
    reason = describe(error);
    fault = findTlsFault(error);
  });
  try {
    await redis.connect();
    await redis.ping();
  } catch (error) {
    const message = error instanceof Error ? error.message : '';
    if (/NOAUTH|WRONGPASS|NOPERM|invalid password/i.test(`${message} ${reason}`)) {
      throw new CommandError(`The Redis at ${host} refuses the login.`, {
        hint: 'Correct REDIS_URL.',
        cause: error,
      });
    }
    if (fault)
      throw new CommandError(`The Redis at ${host} cannot be reached: ${fault.reason}.`, {
        hint: `${fault.remedy}, or correct REDIS_URL.`,
        cause: error,
      });
    throw new CommandError(`The Redis at ${host} cannot be reached (${reason}).`, {
      hint: 'Start it, or correct REDIS_URL: with TLS it begins with rediss://, without with redis://.',
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
      throw new CommandError(`The object store at ${host} refuses the access key (${refusal}).`, {
        hint: 'Correct S3_ACCESS_KEY, S3_SECRET_KEY and S3_BUCKET.',
        cause: error,
      });
    }
    const fault = findTlsFault(error);
    if (fault)
      throw new CommandError(`The object store at ${host} cannot be used: ${fault.reason}.`, {
        hint: `${fault.remedy}, or correct S3_ENDPOINT.`,
        cause: error,
      });
    throw new CommandError(`The object store at ${host} cannot be used (${describe(error)}).`, {
      hint: 'Start it, or correct S3_ENDPOINT and the other S3_ settings.',
      cause: error,
    });
  }
}

/** S3's error codes for unknown credentials and for missing permissions. */
const REFUSALS =
  /^(AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch|AllAccessDisabled|Forbidden)$/;

function findRefusal(error: unknown): string | undefined {
  for (let e: unknown = error; e instanceof Error; e = e.cause) {
    const code = errnoOf(e);
    if (code && REFUSALS.test(code)) return code;
  }
  return undefined;
}

/** The code of the innermost cause, otherwise its message, in one line; where it says nothing, what the error says. */
function describe(error: unknown): string {
  let inner: unknown = error;
  while (inner instanceof Error && inner.cause instanceof Error) inner = inner.cause;
  const said = errnoOf(inner) || messageOf(inner) || messageOf(error);
  return said.replaceAll(/\s+/g, ' ');
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));
