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
  return { record, tag: (await asked).response.headers.get('ETag') ?? '' };
}
