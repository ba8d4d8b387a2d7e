import { sql } from 'drizzle-orm';
import { z } from 'zod';
import { toAuditEntry } from '../../shared/audit/audit.ts';
import { AUDIT_ACTIONS, type AuditAction } from '../../shared/audit/audit-actions.ts';
import { anyOf } from '../../shared/database/any-of.ts';
import type { Database } from '../../shared/database/connect.ts';
import { timestampOf } from '../../shared/database/timestamp.ts';
import { pageOf, toPage } from '../http/pagination.ts';
import { queryInteger } from '../http/query-integer.ts';
import { queryText } from '../http/query-text.ts';
import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { zonedTime } from '../http/zoned-time.ts';
import { operation } from '../openapi/operation.ts';

/** Limit on the pending entries that end a page: far more than there are unless nothing chains them. */
const MAX_PENDING = 10_000;
/** No transaction lasts longer: an entry that is later than another one by this time is behind it in the chain. */
const LONGEST_TRANSACTION = sql`interval '10 minutes'`;

const query = z.strictObject({
  limit: queryInteger({ min: 1, max: 1_000, default: 100 }),
  // An empty one is none, as in other lists.
  after: z.preprocess(
    given => (given === '' ? undefined : given),
    queryInteger({ min: 0, max: Number.MAX_SAFE_INTEGER, default: 0 }),
  ),
  order: z.enum(['oldest', 'newest']).default('oldest').describe('Which come first.'),
  user: queryText.max(64).optional(),
  action: z.enum(AUDIT_ACTIONS).optional(),
  since: zonedTime.optional(),
});
/** Entries of before have `user.update` for each change of a user; later ones tell which it was. */
const actionsFor = (action: AuditAction): AuditAction[] =>
  action === 'user.update'
    ? [action, 'user.promote', 'user.demote', 'user.disable', 'user.enable']
    : [action];

const auditRecord = z
  .object({
    seq: z.number().int(),
    time: z.date(),
    user: z.string().nullable(),
    address: z.string().nullable(),
    action: z.enum(AUDIT_ACTIONS),
    target: z.string().nullable(),
    outcome: z.enum(['ok', 'refused']),
    requestId: z.string().nullable(),
    hash: z.string().nullable(),
  })
  .meta({ id: 'AuditEntry' });
type AuditRecord = z.output<typeof auditRecord>;

/** GET /audit: who did what, for server administrators. */
export default routes('json-body', (router, api) => {
  resource(router, '/audit', {
    get: operation({
      id: 'listAuditEntries',
      topic: 'operations',
      summary: 'Who did what',
      details:
        'In the order of the chain, or from its end with `order=newest`. An entry is there with what it tells; its `hash` is null until it is chained, within a second, and until then its `seq` may change. `hash` is the hexadecimal SHA-256 of the hash before (64 zeros at first), a line feed, and the other members as JSON in this order. Refused logins are told once a minute for an account and an address; of too many, one entry a minute without `user` and `address` tells. A password of Basic that is right is told, as `login`, when it first comes from an address to an API process. The target of a command is the SHA-256 of its text, that of a file of a host the SHA-256 of its path; that of a session is its id and ACCOUNT@HOST, and that of a worker its id and `drain` or `resume`. `user.promote` and `user.demote` tell who becomes an administrator and is one no more; `user.update` is an older word for every change of rights: with `action=user.update` come `user.promote`, `user.demote`, `user.disable` and `user.enable` too.',
      query,
      for: 'administrators',
      answers: { 200: { means: 'A page of entries.', json: pageOf('AuditPage', auditRecord) } },
      handle: async ({ res, query }) => {
        const asked = query();
        const rows = await readAudit(api.database, asked);
        const { items, next } = toPage(rows, asked.limit, ({ seq }) => String(seq));
        res.json({ items, next });
      },
    }),
  });
});

/** One row more than a page has. One statement, so that what is chained meanwhile is neither missed nor there twice. */
async function readAudit(
  { db }: Database,
  { limit, after, order, user, action, since }: z.output<typeof query>,
): Promise<AuditRecord[]> {
  const told = sql`time, username, address, action, target, outcome, request_id as "requestId"`;
  const matches = sql`(${user ?? null}::text is null or username = ${user ?? null})
    and ${action === undefined ? sql`true` : sql`action = ${anyOf(actionsFor(action))}`}
    and ${since === undefined ? sql`true` : sql`time >= ${timestampOf(since)}`}`;
  const isOldestFirst = order === 'oldest';
  const isNext = isOldestFirst
    ? sql`seq > ${after}::bigint`
    : after === 0
      ? sql`true`
      : sql`seq < ${after}::bigint`;
  const page = sql`order by seq ${isOldestFirst ? sql`asc` : sql`desc`} limit ${limit + 1}`;
  // Where to begin: times are not in the order of the chain, but nearly.
  const begin =
    since === undefined
      ? sql`0`
      : sql`coalesce((select seq from audit_entries where time < ${timestampOf(since)} - ${LONGEST_TRANSACTION} order by time desc limit 1), 0)`;
  const rows = await db.execute<Omit<AuditRecord, 'user'> & { username: string | null }>(sql`
    select * from (
      (select seq, ${told}, hash from audit_entries
        where ${isNext} and seq > ${begin} and ${matches} ${page})
      union all
      (select * from (
        select (select last_seq from audit_chain) + row_number() over (order by id) as seq, ${told}, null as hash
          from (select * from audit_pending order by id limit ${MAX_PENDING}) oldest
        ) pending where ${isNext} and ${matches} ${page})
    ) entries ${page}`);
  return [...rows].map(row => {
    const { hash, action } = row;
    const entry = toAuditEntry({ ...row, seq: Number(row.seq), time: new Date(row.time) });
    return { ...entry, action, outcome: row.outcome, hash };
  });
}
