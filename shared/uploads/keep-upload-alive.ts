import { and, eq, isNull, sql } from 'drizzle-orm';
import type { Database } from '../database/connect.ts';
import { uploads } from '../database/schema.ts';
import { writeOrLog } from '../database/write-or-log.ts';
import type { Logger } from '../process/log.ts';

interface Context {
  database: Database;
  log: Logger;
}

/** Seconds between two records of one transfer, unless uploads expire sooner. */
const TOUCH_SECONDS = 60;

/**
 * Records that bytes arrive, so that the upload is not idle, until the returned function is called. `accessed` is when
 * that was last recorded, if the caller knows it.
 */
export async function keepUploadAlive(
  context: Context,
  { uid, accessed }: { uid: string; accessed?: Date },
  idleSeconds: number,
): Promise<() => void> {
  const seconds = Math.min(TOUCH_SECONDS, idleSeconds / 4);
  const touch = () => touchUpload(context, uid, seconds);
  const isRecent = accessed && Date.now() - accessed.getTime() <= seconds * 1_000;
  // Before the first of its parts the upload may be about to expire.
  if (!isRecent) await touch();
  const timer = setInterval(touch, seconds * 1_000);
  return () => clearInterval(timer);
}

/** Writes at most once in `seconds`, over all transfers. */
async function touchUpload(
  { database, log }: Context,
  uid: string,
  seconds: number,
): Promise<void> {
  const touch = database.db
    .update(uploads)
    .set({ accessed: sql`now()` })
    .where(
      and(
        eq(uploads.uid, uid),
        isNull(uploads.job),
        sql`${uploads.accessed} < now() - make_interval(secs => ${seconds})`,
      ),
    );
  await writeOrLog(log, 'recording that an upload goes on', touch);
}
