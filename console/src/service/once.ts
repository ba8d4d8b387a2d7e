import { WindlassError } from '@windlass/client';

const KEY = 'windlass.sent';
/** Who sends the same then wants it done anew. */
const FORGOTTEN_AFTER_MS = 15 * 60_000;

/**
 * Sends a request under an Idempotency-Key that stays the same until the service answers. Where an answer is lost the
 * work may have begun: pressing the button again, even after a reload, gets that work and no second one.
 */
export async function sendOnce<T>(
  request: unknown,
  send: (idempotencyKey: string) => Promise<T>,
): Promise<T> {
  const text = JSON.stringify(request);
  const keys = readKeys();
  const { key, at } = keys[text] ?? { key: newKey(), at: Date.now() };
  keepKeys({ ...keys, [text]: { key, at } });
  try {
    const answer = await send(key);
    forget(text);
    return answer;
  } catch (error) {
    if (isRefusal(error)) forget(text);
    throw error;
  }
}

/**
 * These tell nothing of an earlier attempt under the same key. A proxy's `http_` errors tell nothing of this one
 * either.
 */
const NO_REFUSAL = [401, 403, 408, 429];

/** The service has said no. */
const isRefusal = (error: unknown): boolean =>
  !(error instanceof WindlassError) ||
  (error.status >= 400 &&
    error.status < 500 &&
    !NO_REFUSAL.includes(error.status) &&
    !error.code.startsWith('http_'));

function forget(text: string): void {
  const { [text]: _, ...others } = readKeys();
  keepKeys(others);
}

/** Keys by the request, and when it was first sent. */
type Keys = Record<string, { key: string; at: number }>;

let unstored: Keys = {};

/** They are this page's own, and those of a reload of it. */
function readKeys(): Keys {
  let kept = unstored;
  try {
    kept = JSON.parse(sessionStorage.getItem(KEY) ?? 'null') ?? unstored;
  } catch {
    // A browser may refuse storage, and others may write to it.
  }
  return Object.fromEntries(
    Object.entries(kept).filter(([, { at }]) => Date.now() - at < FORGOTTEN_AFTER_MS),
  );
}

function keepKeys(keys: Keys): void {
  unstored = keys;
  try {
    if (Object.keys(keys).length === 0) sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, JSON.stringify(keys));
  } catch {
    // A browser may refuse storage: they are lost with the page.
  }
}

export const forgetSent = (): void => keepKeys({});

/** Also where a page was not loaded by https, so that there is no randomUUID. */
const newKey = (): string =>
  [...crypto.getRandomValues(new Uint8Array(16))]
    .map(byte => byte.toString(16).padStart(2, '0'))
    .join('');
