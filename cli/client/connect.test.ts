import { expect, test } from 'vitest';
import { adviseOnNetwork } from '../network.ts';
import { normalizeUrl } from './connect.ts';

const SERVICE = 'https://example.org';

test.each([
  ['/', ''],
  ['/console/', ''],
  ['/console/?session=x#/jobs', ''],
  ['/api', ''],
  ['/api/docs', ''],
  ['/windlass/console/', '/windlass'],
  ['/windlass//', '/windlass'],
  ['/apiary', '/apiary'],
])('the service of a page at %s is that at "%s"', (page, path) => {
  expect(normalizeUrl(`${SERVICE}${page}`)).toBe(`${SERVICE}${path}`);
});

test.each(['example.org', 'ftp://example.org', 'https://a:b@example.org', 'https://example.org?a'])(
  '%s is none',
  given => {
    expect(() => normalizeUrl(given)).toThrow('is no address of a service');
  },
);

test('who gave https for http is asked about that', () => {
  const code = 'ERR_SSL_WRONG_VERSION_NUMBER';
  const cause = new TypeError('fetch failed', { cause: Object.assign(new Error('x'), { code }) });
  expect(adviseOnNetwork(cause, {})).toBe('Is it http:// instead of https://?');
});

test('an authority is asked for only where one is missing', () => {
  const adviceOn = (code: string) =>
    adviseOnNetwork(new TypeError('x', { cause: Object.assign(new Error('x'), { code }) }), {});
  expect(adviceOn('UNABLE_TO_VERIFY_LEAF_SIGNATURE')).toMatch(/authority.*_CERT/);
  expect(adviceOn('CERT_HAS_EXPIRED')).toMatch(/^Renew it/);
  expect(adviceOn('ECONNREFUSED')).toMatch(/the service up/);
});
