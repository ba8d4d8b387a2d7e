/** Smaller payloads do not count: LIMIT_FREE_BYTES, LIMIT_OPEN_JOBS and retention bound the number of rows. */
const UNCOUNTED = 4_096;

/** Bytes of a job's payload, as JSON, that its user stores with it; null where they do not count. */
export function payloadBytes(payload: unknown): number | null {
  const bytes = Buffer.byteLength(JSON.stringify(payload));
  return bytes > UNCOUNTED ? bytes : null;
}
