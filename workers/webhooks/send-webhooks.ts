import { failureLevel } from '../../shared/database/failure-level.ts';
import type { WebhookRow } from '../../shared/database/schema.ts';
import { sleep } from '../../shared/process/abort.ts';
import { unseal } from '../../shared/secrets/secrets.ts';
import type { WorkerContext } from '../context.ts';
import {
  type Attempted,
  type DueDelivery,
  findDue,
  recordAttempts,
  returnWebhook,
  takeWebhooks,
} from './attempts.ts';
import { signedHeaders, toMessage } from './message.ts';
import { postMessage } from './post-message.ts';

const LOOK_MS = 1_000;
/**
 * Receivers that this worker serves at once. A slow one holds its place for one round, then waits behind all others.
 */
const AT_ONCE = 64;
/** Attempts at one receiver at once; one alone while it takes nothing. */
const SIDE_BY_SIDE = 4;
/** A round begins attempts for so long. */
const ROUND_MS = 5_000;

type Context = Pick<WorkerContext, 'id' | 'config' | 'database' | 'log' | 'stopping'>;

/**
 * Sends the ends of jobs to their owners' webhooks until the process stops. One worker at a time holds a webhook; a
 * delivery stays in its row until it was taken, whatever dies.
 */
export async function sendWebhooks(context: Context): Promise<void> {
  const { database, log, stopping, id } = context;
  const serving = new Set<Promise<void>>();
  while (!stopping.aborted) {
    const room = AT_ONCE - serving.size;
    const taken =
      room <= 0
        ? []
        : await takeWebhooks(database.db, id, room).catch((err: unknown) => {
            log[failureLevel(err)]({ err }, 'due webhook deliveries could not be read');
            return [];
          });
    for (const webhook of taken) {
      const served = serve(context, webhook)
        .catch((err: unknown) =>
          log.warn({ err, webhook: webhook.id }, 'the deliveries of a webhook could not be sent'),
        )
        .finally(() => serving.delete(served));
      serving.add(served);
    }
    await sleep(stopping, LOOK_MS);
  }
  await Promise.all(serving);
}

/** One round: no receiver keeps its place for longer than that and one attempt. */
async function serve(context: Context, webhook: WebhookRow): Promise<void> {
  const { database, log, stopping, id } = context;
  const until = performance.now() + ROUND_MS;
  let isFailing = webhook.failingSince !== null;
  try {
    const secret = await openSecret(context, webhook).catch((err: unknown) => {
      log.warn({ err, webhook: webhook.id }, 'a webhook key could not be decrypted');
      return undefined;
    });
    do {
      const due = await findDue(database.db, webhook.id, isFailing ? 1 : SIDE_BY_SIDE);
      if (due.length === 0) return;
      const made = await Promise.all(due.map(one => attempt(context, webhook, secret, one)));
      const attempted = made.filter(one => one !== undefined);
      if (attempted.length === 0) return;
      const isDisabled = await recordAttempts(database.db, webhook.id, attempted);
      if (isDisabled)
        log.warn(
          { webhook: webhook.id, user: webhook.owner },
          'a webhook was disabled: its receiver has accepted no delivery for too long',
        );
      isFailing = attempted.every(one => one.problem !== undefined);
    } while (!isFailing && performance.now() < until && !stopping.aborted);
  } finally {
    await returnWebhook(database.db, id, webhook.id).catch(() => {});
  }
}

/** Undefined where this process stops: another one tries it again. */
async function attempt(
  { config, log, stopping }: Context,
  webhook: WebhookRow,
  secret: string | undefined,
  { job, attempts, row, now }: DueDelivery,
): Promise<Attempted | undefined> {
  const failed = (problem: string, status: number | null = null) => {
    log.debug({ webhook: webhook.id, job, status, problem }, 'a delivery was not taken');
    return { job, attempts, status, problem };
  };
  if (!row) return { ...failed('The record of the job is gone.'), isLost: true };
  if (secret === undefined)
    return failed(
      'The key of its signatures cannot be opened any more: remove the webhook and add it anew.',
    );
  const message = toMessage(webhook.id, row);
  try {
    const status = await postMessage(webhook.url, {
      headers: signedHeaders(secret, message, now),
      body: message.body,
      isPrivateAllowed: config.WEBHOOK_PRIVATE,
      signal: stopping,
    });
    if (status >= 200 && status <= 299) return { job, attempts, status, problem: undefined };
    const redirect = status >= 300 && status <= 399 ? ' Redirects are not followed.' : '';
    return failed(`The receiver answered ${status}.${redirect}`, status);
  } catch (error) {
    return stopping.aborted ? undefined : failed((error as Error).message);
  }
}

async function openSecret({ config }: Context, { id, owner, sealed }: WebhookRow): Promise<string> {
  const { SEAL_PRIVATE_KEYS } = config;
  if (!SEAL_PRIVATE_KEYS) throw new Error('this worker has no SEAL_PRIVATE_KEYS');
  return (await unseal<string>(SEAL_PRIVATE_KEYS, { webhook: id, owner }, sealed)).secret;
}
