import { WindlassError } from '@windlass/client';

const KEY = 'windlass.sent';

/**
 * Sends a request under an Idempotency-Key that stays with it until the service has answered. Where an answer is lost the work
 * may have begun: who presses the button again, after a reload too, gets that work and no second one.
 */
export async function sendOnce<T>(
  request: unknown,
  send: (idempotencyKey: string) => Promise<T>,
): Promise<T> {
  const text = JSON.stringify(request);
  const key = readKeys()[text] ?? newKey();
  keepKeys({ ...readKeys(), [text]: key });
  try {
    const answer = await send(key);
    forget(text);
    return answer;
  } catch (error) {
    if (isRefusal(error)) forget(text);
    throw error;
  }
}

/** The service has said no; a proxy may say so too, after the service has begun. */
const isRefusal = (error: unknown): boolean =>
  !(error instanceof WindlassError) ||
  (error.status >= 400 && error.status < 500 && !error.code.startsWith('http_'));

function forget(text: string): void {
  const { [text]: _, ...others } = readKeys();
  keepKeys(others);
}

let unstored: Record<string, string> = {};

/** By the request. They are this page's own, and those of a reload of it. */
function readKeys(): Record<string, string> {
  try {
    return JSON.parse(sessionStorage.getItem(KEY) ?? 'null') ?? unstored;
  } catch {
    return unstored;
  }
}

function keepKeys(keys: Record<string, string>): void {
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
