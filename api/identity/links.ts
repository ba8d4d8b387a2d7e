import { parse } from 'node:querystring';
import { and, eq } from 'drizzle-orm';
import { targetDigest } from '../../shared/audit/audit.ts';
import type { Db } from '../../shared/database/connect.ts';
import { tokens, users } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors/errors.ts';
import { isUnexpired, type Scope } from './api-tokens.ts';
import type { WriteAudit } from './audit.ts';
import { IDENTITY_COLUMNS } from './identity-columns.ts';
import { decodeLink, encodeLink, type LinkedAddress } from './link-text.ts';
import type { SecretKeys } from './secret-keys.ts';
import type { User } from './user.ts';

/** Who makes a link, and by which token, if by one. */
export interface LinkMaker {
  user: User;
  /** The id of the API token. */
  token?: string;
  /** When that ends. */
  ends?: Date;
}

/** Makes a link that lasts for the given seconds, or as long as its maker's token if that is shorter. */
export async function makeLink(
  db: Db,
  { SECRET_KEY }: SecretKeys,
  { user, token, ends }: LinkMaker,
  { address, seconds, audit }: { address: LinkedAddress; seconds: number; audit: WriteAudit },
): Promise<{ link: string; expires: Date }> {
  const { username, version, administrator } = user;
  const latest = Math.floor((ends?.getTime() ?? Number.POSITIVE_INFINITY) / 1_000);
  const expires = Math.min(Math.floor(Date.now() / 1_000) + seconds, latest);
  const created = await db.transaction(async tx => {
    const [row] = await tx
      .select({ created: users.created })
      .from(users)
      .where(and(eq(users.username, username), eq(users.version, version)));
    if (!row) throw new WindlassError('unauthorized');
    await audit(tx, 'link', auditedPath(address.path));
    return row.created.getTime();
  });
  const parameters = Object.keys(parse(address.query));
  const claims = { username, version, created, administrator, expires, parameters };
  const link = encodeLink(SECRET_KEY, { ...claims, token: token ?? null }, address);
  return { link, expires: new Date(expires * 1_000) };
}

/**
 * Who asks by a link: that user with present rights, but no more than its maker had. One query and no cache, so that
 * every process sees its end at once. Undefined when the link is of another address, or has ended.
 */
export async function findLink(
  db: Db,
  { SECRET_KEY, SECRET_KEY_BEFORE }: SecretKeys,
  text: string,
  address: LinkedAddress,
): Promise<{ user: User; scope?: Scope; token?: string; ends: Date } | undefined> {
  const keys = [SECRET_KEY, ...(SECRET_KEY_BEFORE ? [SECRET_KEY_BEFORE] : [])];
  const claims = decodeLink(keys, text, address);
  if (!claims) return undefined;
  const ends = new Date(claims.expires * 1_000);
  if (ends.getTime() <= Date.now()) return undefined;
  const [row] = await db
    .select({
      ...IDENTITY_COLUMNS,
      created: users.created,
      scope: tokens.scope,
    })
    .from(users)
    .leftJoin(
      tokens,
      and(eq(tokens.id, claims.token ?? ''), eq(tokens.username, users.username), isUnexpired),
    )
    .where(
      and(
        eq(users.username, claims.username),
        eq(users.version, claims.version),
        eq(users.disabled, false),
      ),
    );
  if (!row || row.created.getTime() !== claims.created) return undefined;
  if (claims.token !== null && row.scope === null) return undefined;
  const { username, version } = row;
  const administrator = row.administrator && claims.administrator;
  const user = { username, version, administrator };
  return { user, scope: row.scope ?? undefined, token: claims.token ?? undefined, ends };
}

/** The longest path that the audit tells: its entries are kept for long, and count for nobody. */
const AUDITED = 200;

/**
 * Names of files on hosts are private: the audit has a digest of them, as of commands, and of the end of a long path.
 */
function auditedPath(path: string): string {
  const told = path.replace(
    /^((?:\/api)?\/remotes\/[^/]+\/file\/)(.*)$/,
    (_, before: string, file: string) => before + targetDigest(file),
  );
  return told.length > AUDITED ? `${told.slice(0, AUDITED / 2)}…${targetDigest(told)}` : told;
}
