import { expect, test } from 'vitest';
import { AuditRates } from './audit-rates.ts';

test('one user makes 3,000 projects at once, which an entry of the audit tells the end of', () => {
  const rates = new AuditRates();
  const user = { username: 'ann', administrator: false, version: 1 };
  const make = (by = user) => rates.countProject(by);
  for (let n = 0; n < 3_000; n++) make();
  expect(() => make()).toThrow(/at most 3000 projects in one burst/);
  // What else is in the audit has its own rate, and so has every other user.
  for (let n = 0; n < 300; n++) rates.count(user, 'link');
  expect(() => rates.count(user, 'link')).toThrow(/at most 300 links, webhooks and changes/);
  make({ ...user, username: 'bob' });
  make({ ...user, administrator: true });
});
