import { expect, test } from 'vitest';
import { expectProblem } from '../harness/clients/problem.ts';
import { ME, useIdentityProvider } from '../harness/servers/use-identity-provider.ts';
import { describeUnless } from '../harness/skip.ts';
import { startStack } from '../harness/stacks/stack.ts';
import { useStackDatabase } from '../harness/stacks/use-stack.ts';

describeUnless(undefined, 'OIDC_USERS', () => {
  const { provider, stack, admin, addPerson, openBrowser, enter, logIn, cookieOf, bearer } =
    useIdentityProvider({ start: startStack }, { OIDC_USERS: 'groups=windlass' });
  const database = useStackDatabase(stack);

  test('lets nobody else log in, and makes no user of them', async () => {
    for (const claims of [{}, { groups: ['operators'] }, { groups: 'windlass-other' }]) {
      const subject = addPerson(claims);
      const browser = openBrowser(subject);
      const { detail, hint } = await expectProblem(await logIn(browser), 403, 'forbidden');
      expect([detail, hint]).toEqual([
        expect.stringContaining('not as a user of this service'),
        expect.stringContaining('OIDC_USERS'),
      ]);
      expect(cookieOf(browser)).toBe('');
      expect((await admin().fetch(`/api/users/${subject}`)).status).toBe(404);
    }
    const refusals = await database`
      select from audit_pending where action = 'login' and outcome = 'refused' union all
      select from audit_entries where action = 'login' and outcome = 'refused'`;
    expect(refusals.length).toBeGreaterThan(0);
  });

  test('is looked at in each login and each access token', async () => {
    const groups = ['windlass', 'others'];
    const { subject, browser } = await enter({ groups });
    const token = await provider.accessToken(subject);
    const member = await provider.change(token, { groups });
    expect(await (await bearer(member)).json()).toMatchObject({ username: subject });
    const other = await provider.change(token, { groups: ['others'] });
    await expectProblem(await bearer(other, ME), 403, 'forbidden');
    provider.users.set(subject, { preferred_username: subject, groups: ['others'] });
    await expectProblem(await logIn(browser), 403, 'forbidden');
  });
});
