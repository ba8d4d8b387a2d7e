import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { toLoginError } from './login-errors.ts';
import { retryDropped } from './retry-dropped.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const host = { address: '127.0.0.1', port: 22 };
const never = new AbortController().signal;

async function triesOf(error: Error & { code?: string }, hasShownKey: boolean): Promise<number> {
  let tries = 0;
  const attempt = async () => {
    tries++;
    throw toLoginError(error, { host, hasShownKey });
  };
  const ended = expect(retryDropped(attempt, never)).rejects.toMatchObject({
    code: 'remote_connection_failed',
  });
  await vi.runAllTimersAsync();
  await ended;
  return tries;
}

const hungUp = new Error('Connection lost before handshake');
const reset = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });

test.each([
  ['that hung up before it showed its key is asked again', hungUp, false, 5],
  ['that reset the connection before it showed its key is asked again', reset, false, 5],
  ['that knows who wants in is asked once', reset, true, 1],
  ['that is no SSH server is asked once', new Error('Invalid identification string'), false, 1],
])('a host %s', async (_, error, hasShownKey, tries) => {
  expect(await triesOf(error, hasShownKey)).toBe(tries);
});

test('what comes at last is the answer', async () => {
  const errors = [hungUp, reset];
  const connected = retryDropped(async () => {
    const error = errors.shift();
    if (error) throw toLoginError(error, { host, hasShownKey: false });
    return 'connected';
  }, never);
  await vi.runAllTimersAsync();
  expect(await connected).toBe('connected');
});
