import { expect, test } from 'vitest';
import { REFUSALS } from '../concurrency/floods.ts';
import { CredentialRates } from './credential-rates.ts';
import { OwnPasswordChanges } from './own-password-changes.ts';

test('a credential that goes on above the rate of its user is one of a flood', async () => {
  const changes = new OwnPasswordChanges();
  const rates = new CredentialRates();
  const change = () => changes.run('one', async () => rates.countPassword('a'));
  const refusals = () => expect(change()).rejects.toMatchObject({ code: 'too_many_requests' });
  for (let n = 0; n < 20; n++) await change();
  for (let n = 0; n < REFUSALS; n++) {
    expect(changes.isFlood('one')).toBe(false);
    await refusals();
  }
  expect([changes.isFlood('one'), changes.isFlood('other')]).toEqual([true, false]);
});
