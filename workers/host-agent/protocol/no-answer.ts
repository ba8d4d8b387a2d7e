/** A cause of `remote_connection_failed` where the host took the login, and then did not answer in time: nothing has worked. */
export class NoAnswer extends Error {}

export function isUnanswered(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) if (at instanceof NoAnswer) return true;
  return false;
}
