/** README and guide show some of these. To write them anew: WRITE_PICTURES=1 npm test -- test/console/pictures.test.ts */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Page } from 'playwright-core';
import sharp from 'sharp';
import { beforeAll, expect, test } from 'vitest';
import { differenceOf, expectPicture, missingFont } from '../harness/browser/compare-pictures.ts';
import { logInToConsole, openConsole, useChromium } from '../harness/browser/console-page.ts';
import { pinTexts } from '../harness/browser/pin-texts.ts';
import { makeTable } from '../harness/clients/tables.ts';
import { addHost, launchAsync, openSession, waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack, useStackDatabase } from '../harness/stacks/use-stack.ts';

const root = join(import.meta.dirname, '../..');
const WINDOW = { width: 1280, height: 800 };
/** The place of CI's machines, so that a page says the same anywhere. */
const PLACE = { locale: 'en-US', timezoneId: 'UTC' };
/** The hour at which the overview is looked at: of a day that is over, so that nothing is added to it meanwhile. */
const NOON = new Date(`${new Date(Date.now() - 2 * 86_400_000).toISOString().slice(0, 10)}T12:00Z`);
const SIMULATION = `printf '\\033[1mgrid\\033[0m 512 × 512 × 128, 64 ranks\\n'
for step in 1 2 3 4 5 6 7 8; do
  printf 'step %d  residual %s  \\033[32mok\\033[0m\\n' $step 3.1e-0$step
done
printf 'written to \\033[36mrun-7/frames\\033[0m\\n'
# The two streams are in order only where one is sent before the other is written.
sleep 1; echo 'warning: time step halved twice' >&2`;

const RESIDUALS = [
  'step,time,residual,region',
  ...Array.from({ length: 2_000 }, (_, step) => {
    const residual = Math.exp(-step / 400) * (1 + 0.3 * Math.sin(step / 25));
    return `${step},${(step * 0.005).toFixed(3)},${residual.toFixed(6)},${step % 3 ? 'inner' : 'wall'}`;
  }),
].join('\n');

const skip = missingPrograms('sshd', 'chromium') ?? missingFont();
describeStack(skip, 'the main pages look as in pictures', form => {
  const { stack, client, sshd } = useRemoteStack(form, {
    workers: 2,
    alone: 'all jobs are in its pictures',
  });
  const database = useStackDatabase(stack);
  const browser = useChromium();
  let page: Page;
  let sid: string;
  let simulation: string;
  let failed: string;
  let folder: string;
  let project: string;
  let model: string;

  beforeAll(async () => {
    await addHost(client, sshd, { name: 'lab' });
    await client.post('/api/users', { username: 'alice', password: 'a long enough password' });
    sid = await openSession(client, sshd, { hostname: 'lab' });
    const run = async (name: string, command: string) => {
      const options = { sid, command, name };
      const prefer = { Prefer: 'respond-async' };
      const { id } = await client.post<{ id: string }>('/api/remotes/launch', options, prefer);
      await waitForEnd(client, id);
      return id;
    };
    await run('Compile', 'echo compiled');
    failed = await run('Check the input', 'echo "mesh.h5: not found" >&2; exit 2');
    const { id } = await launchAsync(client, sid, 'exec sleep 600');
    await client.delete(`/api/jobs/${id}`);
    await waitForEnd(client, id);
    simulation = await run('Channel flow, run 7', SIMULATION);
    // How long each waited and ran is seen, too.
    await database`update jobs set started = created + interval '0.3 s', finished = created + interval '1.5 s'
      where started is not null`;
    folder = join(sshd.home, 'run-7');
    mkdirSync(join(folder, 'frames'), { recursive: true });
    for (const [name, text] of [
      ['residuals.csv', RESIDUALS],
      ['input.yaml', 'grid: [512, 512, 128]\n'],
      ['solver.log', 'step 1\n'],
    ] as const)
      writeFileSync(join(folder, name), text);
    const made = await client.post<{ id: string }>('/api/projects', {
      name: 'Channel flow',
      description: 'Turbulence near a wall, runs 1 to 7.',
    });
    project = made.id;
    for (const name of ['Run 6', 'Run 7']) {
      const given = { name, 'model-type': 'simulation', description: '512 × 512 × 128' };
      model = (await client.post<{ id: string }>(`/api/projects/${project}/models`, given)).id;
    }
    await makeTable(client, { mid: model, aid: 'residuals', csv: RESIDUALS });
    ({ page } = await openConsole(browser, stack.url, { viewport: WINDOW, ...PLACE }));
  });

  /** What a person sees at this address, once it shows `sign`, in both themes. */
  async function expectToLookAs(name: string, path: string, sign: string): Promise<void> {
    if (path !== '') await page.goto(`${stack.url}/console/${path}`);
    await page.getByText(sign).and(page.locator(':not(option)')).first().waitFor();
    await expect.poll(() => page.locator('[aria-busy=true]').count()).toBe(0);
    if (/ lines?$/.test(sign)) await page.locator('.log-row').first().waitFor();
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      await expectPicture(await lookAt(), join(root, `docs/console/${name}-${colorScheme}.webp`));
    }
  }

  /** The page, once it has stood still. */
  async function lookAt(): Promise<Buffer> {
    const takePicture = async () => {
      await pinTexts(page, [
        [/windlass-test-\d+-sshd-\w+/, 'lab'],
        [new RegExp(`^${sshd.username}$`), 'alice'],
        [stack.dataDir, '/srv/windlass'],
        [dirname(stack.dataDir), '/srv'],
        [new URL(stack.url).port, '3000'],
      ]);
      return page.screenshot({ animations: 'disabled', caret: 'hide' });
    };
    for (let before = await takePicture(), tries = 0; ; tries++) {
      const now = await takePicture();
      if (now.equals(before)) return now;
      if (tries === 20) throw new Error(`${page.url()} does not stand still`);
      before = now;
    }
  }

  /** A day of jobs before NOON, as the workers count them: more by day, and an hour in which many failed. */
  async function writeStatistics(): Promise<void> {
    await database`
      insert into job_statistics (minute, kind, succeeded, failed, cancelled, waits, longest_wait, durations,
        longest_duration, waiting, running)
      select ${NOON.toISOString()}::timestamptz - n * interval '5 minutes', kind, round(many * load),
        case when n between 60 and 72 then round(many * load / 3) else 0 end, (n % 40 = 0)::int * 2,
        array_fill(0, array[(3 + 2 * load)::int]) || array[9, 1], 2 * load,
        array_fill(0, array[(6 + many / 3 + load)::int]) || array[9, 1], 30 * load,
        round(load * load * 6), round(many * load / 2)
      from (values ('command', 12), ('video', 3)) as kinds (kind, many), generate_series(1, 287) n,
        lateral (select 1.05 + cos(n * 2 * pi() / 288) + 0.2 * sin(n * 1.7) as load) loads`;
  }

  test('login', async () => {
    await expectToLookAs('login', '', 'User name');
    await logInToConsole(page, stack);
  });

  test.each([
    ['run', () => `run?session=${sid}&job=${simulation}`, '11 lines'],
    ['jobs', () => 'jobs', 'Channel flow'],
    ['job', () => `jobs/${failed}`, '1 line'],
    ['files', () => `files?session=${sid}&path=${folder}&file=residuals.csv`, 'inner'],
    ['project', () => `projects/${project}`, 'Run 7'],
    [
      'table',
      () => `projects/${project}/models/${model}/table?name=residuals&x=time&y=residual`,
      '1.00947',
    ],
    ['users', () => 'operate/users', 'alice'],
    ['settings', () => 'operate/settings', 'PUBLIC_URL'],
  ])('%s', async (name, path, sign) => {
    await expectToLookAs(name, path(), sign);
  });

  test('overview', async () => {
    await writeStatistics();
    await page.clock.setFixedTime(NOON);
    // The console goes by the service's clock.
    await page.route('**/api/**', async route => {
      const response = await route.fetch();
      const headers = { ...response.headers(), date: NOON.toUTCString() };
      await route.fulfill({ response, headers });
    });
    await expectToLookAs('overview', 'operate/overview', 'Jobs that ended');
  });

  test('a picture of another theme, or without its sidebar, is not taken for the same', async () => {
    const path = (theme: string) => join(root, `docs/console/jobs-${theme}.webp`);
    expect(await differenceOf(path('light'), path('light'))).toBe(0);
    expect(await differenceOf(path('light'), path('dark'))).toBeGreaterThan(0.5);
    const side = { left: 216, top: 0, width: WINDOW.width - 216, height: WINDOW.height };
    const without = await sharp(path('light')).extract(side).png().toBuffer();
    expect(await differenceOf(path('light'), without)).toBeGreaterThan(0.02);
  });
});
