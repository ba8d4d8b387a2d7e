import { expect, test } from 'vitest';
import { addressOf } from './free-ports.ts';

test('the address of the service is a URL, whatever it listens on', () => {
  for (const host of ['127.0.0.1', 'localhost', '::1', '::'])
    expect(new URL(addressOf(host, 8080)).port).toBe('8080');
  expect(addressOf('::1', 8080)).toBe('http://[::1]:8080');
});
