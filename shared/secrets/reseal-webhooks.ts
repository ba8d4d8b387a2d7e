import { and, eq } from 'drizzle-orm';
import type { Database } from '../database/connect.ts';
import { webhooks } from '../database/schema.ts';
import { isSealedWith, publicKeyOf, seal, unseal } from './secrets.ts';

/** Stands for a destination: the key goes nowhere, because signatures are made here. */
export const WEBHOOK_DESTINATION = 'webhook';

/** Seals the keys of webhooks anew that are not sealed with the first of the private keys; how many. */
export async function resealWebhooks({ db }: Database, privateKeys: string): Promise<number> {
  const publicKey = publicKeyOf(privateKeys);
  const rows = await db
    .select({ webhook: webhooks.id, owner: webhooks.owner, sealed: webhooks.sealed })
    .from(webhooks);
  let resealed = 0;
  for (const { sealed, ...context } of rows) {
    if (isSealedWith(publicKey, sealed)) continue;
    const opened = await unseal<string>(privateKeys, context, sealed).catch(() => undefined);
    if (!opened) continue;
    const given = { destination: WEBHOOK_DESTINATION, secret: opened.secret };
    const written = await db
      .update(webhooks)
      .set({ sealed: await seal(publicKey, context, given) })
      .where(and(eq(webhooks.id, context.webhook), eq(webhooks.sealed, sealed)))
      .returning({ id: webhooks.id });
    resealed += written.length;
  }
  return resealed;
}
