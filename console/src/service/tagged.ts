import { unwrap } from '@windlass/client';

/** A record with the validator by which a change of it is refused where somebody else changed it meanwhile. */
export interface Tagged<Record> {
  record: Record;
  tag: string;
}

/** An answer with its validator. */
export async function tagged<Record>(
  asked: Promise<{ data?: Record; error?: unknown; response: Response }>,
): Promise<Tagged<Record>> {
  const record = await unwrap(asked);
  return { record, tag: tagOf((await asked).response) };
}

/**
 * The tag as the service gave it. A compressing proxy makes it weak, and If-Match accepts no weak tag (RFC 9110,
 * 13.1.1); it names the record's state all the same.
 */
export const tagOf = ({ headers }: Response): string =>
  (headers.get('ETag') ?? '').replace(/^W\//, '');
