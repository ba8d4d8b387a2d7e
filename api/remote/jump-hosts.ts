import { eq, isNotNull, or, sql } from 'drizzle-orm';
import { ADVISORY_LOCKS } from '../../shared/database/advisory-locks.ts';
import type { Tx } from '../../shared/database/connect.ts';
import { hosts } from '../../shared/database/schema.ts';
import { conflict, type WindlassError } from '../../shared/errors/errors.ts';
import { MAX_JUMPS } from '../../shared/ssh/hops.ts';
import { invalidInput } from '../http/validate.ts';

/**
 * Locks the ways to all hosts until the end of the transaction, in which a host gets this jump host. Throws
 * `invalid_input` where there is no such host, or where a way, also that of a host behind this one, would lead back or
 * be too long.
 */
export async function lockJump(
  tx: Tx,
  { name, jump }: { name: string; jump: string | null },
): Promise<void> {
  if (jump === null) return;
  await tx.execute(sql`select pg_advisory_xact_lock(${ADVISORY_LOCKS.jumps})`);
  const rows = await tx
    .select({ name: hosts.name, jump: hosts.jump })
    .from(hosts)
    .where(or(isNotNull(hosts.jump), eq(hosts.name, jump)))
    .for('key share');
  const jumps = new Map(rows.map(row => [row.name, row.jump]));
  if (!jumps.has(jump) && jump !== name) throw refuse(`there is no host ${jump}`);
  jumps.set(name, jump);
  for (const host of jumps.keys()) {
    const way = [host];
    for (let next = jumps.get(host); next; next = jumps.get(next)) {
      if (way.includes(next)) throw refuse(`leads back: ${[...way, next].join(', through ')}`);
      way.push(next);
      if (way.length > MAX_JUMPS + 1)
        throw refuse(
          `at most ${MAX_JUMPS} jump hosts are on the way to a host: ${way.join(', through ')}`,
        );
    }
  }
}

/** Throws `conflict` where hosts are reached through one that is to be removed. The caller has locked its row. */
export async function refuseHostsBehind(tx: Tx, name: string): Promise<void> {
  const behind = await tx
    .select({ name: hosts.name })
    .from(hosts)
    .where(eq(hosts.jump, name))
    .orderBy(hosts.name)
    .limit(MAX_NAMED + 1);
  if (behind.length === 0) return;
  const named = behind.slice(0, MAX_NAMED).map(host => host.name);
  const more = behind.length > MAX_NAMED ? ' and others' : '';
  throw conflict(
    `${name} is the jump host of ${named.join(', ')}${more}.`,
    'Give them another jump host, or "jump": null, or remove them before.',
  );
}

const MAX_NAMED = 10;

const refuse = (problem: string): WindlassError =>
  invalidInput([{ field: 'jump', problem }], 'Name another host of GET /api/hosts, or none: null.');
