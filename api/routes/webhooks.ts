import { randomBytes } from 'node:crypto';
import { isIP } from 'node:net';
import { and, count, desc, eq, getTableColumns, lt } from 'drizzle-orm';
import type { Response } from 'express';
import { z } from 'zod';
import { WEBHOOK_COLUMNS, type WebhookRecord } from '../../shared/database/api-columns.ts';
import {
  END_STATES,
  type WebhookDeliveryRow,
  webhookDeliveries,
  webhooks,
} from '../../shared/database/schema.ts';
import { conflict, notFound, WindlassError } from '../../shared/errors/errors.ts';
import { isId, newId } from '../../shared/ids.ts';
import { JOB_KINDS } from '../../shared/jobs/catalog.ts';
import { WEBHOOK_DESTINATION } from '../../shared/secrets/reseal-webhooks.ts';
import { seal } from '../../shared/secrets/secrets.ts';
import { isPrivateAddress } from '../../shared/ssh/private-addresses.ts';
import { checkIfMatch, entityTag, sendRecord } from '../http/conditional-requests.ts';
import type { Exchange } from '../http/exchange.ts';
import { pageOf, pageQuery, readPage, toPage } from '../http/pagination.ts';
import { pathParameter, resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { auditOf } from '../identity/audit.ts';
import { currentUser } from '../identity/current-user.ts';
import { lockUnchangedUser } from '../identity/lock-user.ts';
import { answerWithLocation, operation } from '../openapi/operation.ts';

/** Webhooks that one user may have. */
const MAX_WEBHOOKS = 20;
/** 24 to 64 bytes, says Standard Webhooks. */
const SECRET_BYTES = 32;

const kind = z.enum(JOB_KINDS as [string, ...string[]]);
const state = z.enum(END_STATES);
const someOf = <T extends z.ZodType>(item: T, most: number) => z.array(item).min(1).max(most);
const newWebhook = z
  .strictObject({
    url: z
      .string()
      .max(2_048)
      .regex(/^https?:\/\//, 'must begin with https:// or http://')
      .refine(isReceiver, 'must begin with https:// or http://, without a user and a fragment'),
    kinds: someOf(kind, JOB_KINDS.length).optional(),
    states: someOf(state, END_STATES.length).optional(),
  })
  .meta({ id: 'NewWebhook' });
const madeWebhook = z.object({ id: z.string(), secret: z.string() }).meta({ id: 'MadeWebhook' });
const webhookRecord = z
  .object({
    id: z.string(),
    url: z.string(),
    kinds: z.array(z.string()).nullable().describe('Of jobs that it is sent; null: all.'),
    states: z.array(state).nullable().describe('In which these end; null: all.'),
    created: z.date(),
    failing: z.date().nullable().describe('Since when the receiver has taken nothing.'),
    problem: z.string().nullable().describe('What the last attempt failed with.'),
    disabled: z.date().nullable().describe('Since when it is sent nothing any more.'),
  })
  .meta({ id: 'Webhook' });
const deliveryRecord = z
  .object({
    job: z.string(),
    state: z.enum(['pending', 'delivered', 'failed']),
    created: z.date().describe('When the job ended.'),
    attempts: z.number().int(),
    tried: z.date().nullable().describe('The last attempt.'),
    next: z.date().nullable().describe('The next attempt.'),
    status: z.number().int().nullable().describe('Of the last answer.'),
    problem: z.string().nullable().describe('What the last attempt failed with.'),
  })
  .meta({ id: 'WebhookDelivery' });

const toWebhookRecord = (row: WebhookRecord): z.output<typeof webhookRecord> => ({
  id: row.id,
  url: row.url,
  kinds: row.kinds,
  states: row.states,
  created: row.created,
  failing: row.failingSince,
  problem: row.problem,
  disabled: row.disabled,
});

/** Not the record of a job that was removed, which may be long. */
const { record: _, ...deliveryColumns } = getTableColumns(webhookDeliveries);

/** What waits for a webhook that is disabled is given up. */
const viewDelivery =
  ({ disabled }: WebhookRecord) =>
  (row: Omit<WebhookDeliveryRow, 'record'>): z.output<typeof deliveryRecord> => {
    const state = row.state === 'pending' && disabled ? 'failed' : row.state;
    return {
      job: row.job,
      state,
      created: row.created,
      attempts: row.attempts,
      tried: row.lastTried,
      next: state === 'pending' ? row.due : null,
      status: row.status,
      problem: row.problem,
    };
  };

/** Webhooks: where the ends of one's own jobs are sent to. Workers send them (workers/webhooks). */
export default routes('json-body', (router, api) => {
  const { db } = api.database;
  const isOwn = (res: Response) => eq(webhooks.owner, currentUser(res).username);
  const find = async ({ req, res }: Exchange): Promise<WebhookRecord> => {
    const id = pathParameter(req, 'id');
    const [row] = isId(id)
      ? await db
          .select(WEBHOOK_COLUMNS)
          .from(webhooks)
          .where(and(eq(webhooks.id, id), isOwn(res)))
      : [];
    if (!row) throw notFound('there is no such webhook.', 'GET /api/webhooks lists yours.');
    return row;
  };

  resource(router, '/webhooks', {
    get: operation({
      id: 'listWebhooks',
      topic: 'jobs',
      summary: 'List your webhooks',
      query: pageQuery,
      answers: {
        200: { means: 'A page of webhooks.', json: pageOf('WebhookPage', webhookRecord) },
      },
      handle: async ({ res, query }) => {
        const rows = db.select(WEBHOOK_COLUMNS).from(webhooks);
        const order = { by: webhooks.id, key: 'id', where: isOwn(res) } as const;
        const page = await readPage(rows, query(), order, toWebhookRecord);
        res.json(page);
      },
    }),
    post: operation({
      id: 'createWebhook',
      topic: 'jobs',
      summary: 'Have the ends of your jobs sent to a URL',
      details:
        'Each end of one of your jobs is sent as Standard Webhooks (https://www.standardwebhooks.com), with the type `job.succeeded`, `job.failed` or `job.cancelled` and the record of the job: at least once, again and again for 3 days where it is not answered 2xx within 15 s. Then the webhook is disabled. Redirects are not followed. An address must be none of the inside of the network, unless WEBHOOK_PRIVATE allows that. No token makes one.',
      body: newWebhook,
      refusesTokens: true,
      answers: {
        201: answerWithLocation('Made. `secret` is shown this once.', 'The webhook.', madeWebhook),
      },
      errors: ['forbidden', 'host_not_allowed', 'conflict'],
      handle: async ({ req, res, body }) => {
        const given = body();
        if (!api.config.WEBHOOK_PRIVATE) refusePrivate(new URL(given.url));
        await api.freeSpace.assertFree();
        const owner = currentUser(res).username;
        const id = newId();
        const secret = `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;
        const sealed = await seal(
          api.config.SEAL_PUBLIC_KEY,
          { webhook: id, owner },
          { destination: WEBHOOK_DESTINATION, secret },
        );
        await db.transaction(async tx => {
          await lockUnchangedUser(tx, currentUser(res));
          const [open] = await tx
            .select({ n: count() })
            .from(webhooks)
            .where(eq(webhooks.owner, owner));
          if ((open?.n ?? 0) >= MAX_WEBHOOKS)
            throw conflict(
              `you have ${MAX_WEBHOOKS} webhooks.`,
              'Delete one: GET /api/webhooks lists them.',
            );
          await tx.insert(webhooks).values({ ...given, id, owner, sealed });
          await auditOf({ req, res })(tx, 'webhook.create', id);
        });
        res
          .status(201)
          .location(`/api/webhooks/${id}`)
          .set('Cache-Control', 'no-store')
          .json({ id, secret });
      },
    }),
  });

  resource(router, '/webhooks/:id', {
    get: operation({
      id: 'getWebhook',
      topic: 'jobs',
      summary: 'Look at a webhook, and whether its receiver takes what it is sent',
      headers: ['If-None-Match'],
      answers: { 200: { means: 'The webhook.', json: webhookRecord }, 304: 'Unchanged.' },
      errors: ['not_found'],
      handle: async ({ req, res }) => {
        const record = toWebhookRecord(await find({ req, res }));
        sendRecord({ req, res }, { tag: entityTag(record), record: () => record });
      },
    }),
    delete: operation({
      id: 'deleteWebhook',
      topic: 'jobs',
      summary: 'Delete a webhook: it is sent nothing any more',
      headers: ['If-Match'],
      refusesTokens: true,
      answers: { 204: 'Deleted.' },
      errors: ['not_found'],
      handle: async ({ req, res }) => {
        const row = await find({ req, res });
        checkIfMatch(req, entityTag(toWebhookRecord(row)));
        await db.transaction(async tx => {
          const gone = await tx
            .delete(webhooks)
            .where(eq(webhooks.id, row.id))
            .returning({ id: webhooks.id });
          if (gone.length > 0) await auditOf({ req, res })(tx, 'webhook.delete', row.id);
        });
        res.status(204).end();
      },
    }),
  });

  resource(router, '/webhooks/:id/deliveries', {
    get: operation({
      id: 'listWebhookDeliveries',
      topic: 'jobs',
      summary: 'List what was sent to a webhook, and what is to be sent, the latest job first',
      details: 'Kept for 30 days after the end of the job.',
      query: pageQuery,
      answers: {
        200: {
          means: 'A page of deliveries.',
          json: pageOf('WebhookDeliveryPage', deliveryRecord),
        },
      },
      errors: ['not_found'],
      handle: async ({ req, res, query }) => {
        const row = await find({ req, res });
        const { limit, after } = query();
        const rows = await db
          .select(deliveryColumns)
          .from(webhookDeliveries)
          .where(
            and(
              eq(webhookDeliveries.webhook, row.id),
              after === undefined ? undefined : lt(webhookDeliveries.job, after),
            ),
          )
          .orderBy(desc(webhookDeliveries.job))
          .limit(limit + 1);
        const page = toPage(rows.map(viewDelivery(row)), limit, ({ job }) => job);
        res.json(page);
      },
    }),
  });
});

function isReceiver(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, hash } = new URL(text);
  return ['http:', 'https:'].includes(protocol) && username + password + hash === '';
}

/** Checks the URL itself; the addresses of its name are checked at each delivery. Throws `host_not_allowed`. */
function refusePrivate({ hostname }: URL): void {
  const name = hostname.replace(/^\[|\]$/g, '');
  const isPrivate = isIP(name) ? isPrivateAddress(name) : /^(.+\.)?localhost\.?$/.test(name);
  if (!isPrivate) return;
  throw new WindlassError('host_not_allowed', {
    detail: `${name} is a loopback, link-local or private address.`,
    hint: 'Use an address that everybody reaches. An operator can allow others with WEBHOOK_PRIVATE.',
  });
}
