import { beforeAll, expect, test } from 'vitest';
import { findFreePort } from '../../servers/free-port.ts';
import {
  expectAccessible,
  logInToConsole,
  openConsole,
  useChromium,
} from '../harness/browser/console-page.ts';
import { CLIENT, startOidcProvider } from '../harness/servers/oidc-provider.ts';
import { startPrefixProxy } from '../harness/servers/prefix-proxy.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStarted } from '../harness/stacks/use-stack.ts';

const PATH = '/science/windlass';

describeStack(missingPrograms('chromium'), 'the console behind a proxy, at a path', form => {
  let port = 0;
  let site = '';
  beforeAll(async () => {
    port = await findFreePort();
    // Not by its number, by which the harness would take it for the service itself.
    site = `http://localhost:${port}${PATH}`;
  });
  const provider = useStarted(() => startOidcProvider(`${site}/api/login/oidc/callback`));
  const stack = useStarted(() =>
    form.start({
      env: {
        PUBLIC_URL: site,
        OIDC_ISSUER: provider.issuer,
        OIDC_CLIENT_ID: CLIENT.id,
        OIDC_CLIENT_SECRET: CLIENT.secret,
      },
    }),
  );
  useStarted(() => startPrefixProxy(port, { path: PATH, to: stack.url }));
  const browser = useChromium();

  test('is whole there: files, addresses, calls and cookies', async () => {
    const { page, faults } = await openConsole(browser, site, { path: 'jobs?state=Failed' });
    await logInToConsole(page, stack);
    await page.getByText('No job matches').waitFor();
    expect(page.url()).toBe(`${site}/console/jobs?state=Failed`);
    await page.getByRole('link', { name: 'Run', exact: true }).click();
    await page.getByText('Add a host').first().waitFor();
    expect(page.url()).toBe(`${site}/console/run`);
    await page.goto(`${site}/`);
    await page.waitForURL(`${site}/console/run`);
    expect(faults).toEqual([]);
  });

  test('leads to the identity provider, and back to where it was', async () => {
    provider.users.set('ada', { preferred_username: 'ada' });
    const { page, faults } = await openConsole(browser, site, { path: 'jobs?kind=video' });
    await page
      .context()
      .addCookies([{ name: 'who', value: 'ada', url: provider.issuer, httpOnly: true }]);
    const link = page.getByRole('link', { name: 'Log in with your organization' });
    await link.waitFor();
    await expectAccessible(page);
    await link.click();
    await page.waitForURL(`${site}/console/jobs?kind=video`);
    await page.getByText('ada', { exact: true }).waitFor();
    expect(faults.filter(fault => !fault.includes(provider.issuer))).toEqual([]);
  });
});
