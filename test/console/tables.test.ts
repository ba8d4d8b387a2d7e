import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { formatNpyHeader } from '../../shared/arrays/npy-header.ts';
import {
  type ConsolePage,
  expectAccessible,
  expectToFit,
  holdRequests,
  logInToConsole,
  openConsole,
  useChromium,
} from '../harness/browser/console-page.ts';
import { makeArray, makeTable, parse } from '../harness/clients/tables.ts';
import { makeModel } from '../harness/clients/uploads.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack } from '../harness/stacks/use-stack.ts';

const ROWS = 10_000_000;
/** One value that stands out: a plot that leaves rows out misses it. */
const PEAK = 7_654_321;
const MAX = ROWS.toLocaleString('en-US');
/** A text of lines that no cell shows whole. */
const noteOf = (row: number) =>
  `Note ${row}: ${'the sky was clear, '.repeat(40)}\nand then it rained.`;
/** Runs in the page: goes to the end, and to the row that is filled in when the address is about to be told that. */
const GO_LATE = `(async () => {
  const { setTimeout } = window;
  let since = 0;
  window.setTimeout = (...given) => {
    if (given[1] === 400) since = performance.now();
    return setTimeout(...given);
  };
  document.querySelector('.grid').dispatchEvent(new KeyboardEvent('keydown', { key: 'End' }));
  const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));
  while (since === 0) await sleep(5);
  window.setTimeout = setTimeout;
  while (performance.now() < since + 380) await sleep(1);
  document.querySelector('[name=row]').form.requestSubmit();
  // It is drawn; then the machine is busy until after the end was to be told.
  for (let n = 0; n < 20; n++) await undefined;
  while (performance.now() < since + 450);
})()`;

describeStack(missingPrograms('chromium'), 'tables in the console', form => {
  const { stack, client } = useStack(form);
  const browser = useChromium();
  const folder = makeTempDir('console-table');
  let opened: ConsolePage;
  let page: Page;
  let base: string;

  beforeAll(async () => {
    const { pid, mid } = await makeModel(client);
    base = `projects/${pid}/models/${mid}`;
    const file = join(folder.path, 'big.parquet');
    const database = await (await DuckDBInstance.create()).connect();
    await database.run(
      `copy (select i as n, case when i = ${PEAK} then 90 else i % 10 end as load
       from range(${ROWS}) as t(i)) to '${file}' (format parquet, compression zstd)`,
    );
    database.closeSync();
    const files = { big: [readFileSync(file)] };
    expect((await parse(client, { mid, parser: 'parquet', files })).state).toBe('succeeded');
    const csv = `id,"a, b",sky\n9007199254740993,1.50,clear\n9007199254740995,,"snow, rain"\n`;
    await makeTable(client, { mid, aid: 'small/one.csv', csv });
    const names = Array.from({ length: 60 }, (_, n) => `column ${n}`);
    const wide = `${names.join(',')}\n${names.map((_, n) => n).join(',')}\n`;
    await makeTable(client, { mid, aid: 'wide', csv: wide });
    const physics =
      't,mass,wave\n0,1.67e-27,4.489712379304426e-9\n1.5,9.1e-31,-1.7976931348623157e308\n';
    await makeTable(client, { mid, aid: 'physics', csv: physics });
    await makeTable(client, {
      mid,
      aid: 'digits',
      csv: 'v\n9223372036854775808\n-0.0\n1e21\n0.5\n',
    });
    const notes = `id,note,seen\n${Array.from({ length: 300 }, (_, n) => `${n},"${noteOf(n)}",`).join('\n')}\n`;
    await makeTable(client, { mid, aid: 'notes', csv: notes });
    await makeArray(client, { mid, aid: 'grid' });
    opened = await openConsole(browser, stack.url, { path: `${base}/content` });
    page = opened.page;
    await logInToConsole(page, stack);
  });
  afterAll(() => folder.remove());

  const grid = () => page.getByRole('grid', { name: 'Rows' });
  /** What stands in the rows that are drawn, by their numbers. */
  const shown = async () => {
    const rows = await grid()
      .locator('.grid-row')
      .evaluateAll(all => all.map(row => [...row.children].map(cell => cell.textContent)));
    return new Map(rows.map(([number, ...values]) => [number, values.join(' ')]));
  };
  const at = async (row: number) => (await shown()).get(row.toLocaleString('en-US'));
  /** The first look at a view waits for the job that makes it. An error tells where the grid stands instead. */
  const rowIs = async (row: number, values: string) => {
    try {
      await expect.poll(() => at(row), { timeout: 60_000 }).toBe(values);
    } catch (cause) {
      const scrollTop = await grid().evaluate(element => element.scrollTop);
      const seen = [...(await shown())].slice(0, 3);
      const place = JSON.stringify({ url: page.url(), scrollTop, seen });
      throw new Error(`Row ${row} is not "${values}": ${place}`, { cause });
    }
  };
  const parameter = (name: string) => new URL(page.url()).searchParams.get(name);
  const expectUsable = async () => {
    await expectAccessible(page);
    await expectToFit(page);
  };

  test('ten million rows are scrolled, to their middle and their end, and by the address', async () => {
    await page.getByRole('link', { name: 'big', exact: true }).click();
    await page.getByText(`${MAX} rows, 2 columns`).waitFor();
    await rowIs(1, '0 0');
    await expectUsable();
    await grid().evaluate(element => {
      element.scrollTop = (element.scrollHeight - element.clientHeight) / 2;
    });
    await expect.poll(() => Number(parameter('row')) / ROWS).toBeCloseTo(0.5, 2);
    const middle = Number(parameter('row'));
    await rowIs(middle, `${middle - 1} ${(middle - 1) % 10}`);
    await page.reload();
    await rowIs(middle, `${middle - 1} ${(middle - 1) % 10}`);
    await grid().focus();
    await page.keyboard.press('End');
    await rowIs(ROWS, `${ROWS - 1} 9`);
    await page.keyboard.press('PageUp');
    await expect.poll(async () => (await shown()).has(MAX)).toBe(false);
    // A scroll that is under way does not lead back.
    for (const key of ['PageUp', 'PageUp', 'End']) await page.keyboard.press(key);
    await page.evaluate(SETTLED);
    await rowIs(ROWS, `${ROWS - 1} 9`);
    expect((await shown()).has(MAX)).toBe(true);
    await page.keyboard.press('Home');
    await rowIs(1, '0 0');
    await page.getByLabel('Row', { exact: true }).fill(String(PEAK + 1));
    await page.keyboard.press('Enter');
    await rowIs(PEAK + 1, `${PEAK} 90`);
    expect(parameter('row')).toBe(String(PEAK + 1));
  });

  test('a row that is asked for while the one before is told to the address is gone to', async () => {
    await grid().focus();
    await page.keyboard.press('Home');
    await rowIs(1, '0 0');
    await expect.poll(() => parameter('row')).toBe(null);
    await page.getByLabel('Row', { exact: true }).fill(String(ROWS / 2));
    await page.evaluate(GO_LATE);
    await rowIs(ROWS / 2, `${ROWS / 2 - 1} 9`);
    expect(parameter('row')).toBe(String(ROWS / 2));
  });

  test('rows are filtered and sorted, and downloaded as they are shown', async () => {
    await page.getByRole('button', { name: 'About load' }).click();
    const panel = page.getByRole('region', { name: 'About load' });
    await panel.getByLabel('Condition').selectOption('ge');
    await panel.getByLabel('Value').fill('9');
    await panel.getByRole('button', { name: 'Filter', exact: true }).click();
    await page.getByText('1,000,001 of 10,000,000 rows').waitFor({ timeout: 60_000 });
    await rowIs(1, '9 9');
    await page.getByRole('button', { name: 'Leave out the filter load ≥ 9' }).waitFor();
    await page.getByRole('button', { name: 'About n' }).click();
    const other = page.getByRole('region', { name: 'About n' });
    await other.getByLabel('Condition').selectOption('lt');
    await other.getByLabel('Value').fill('100');
    await other.getByRole('button', { name: 'Filter', exact: true }).click();
    await page.getByText('10 of 10,000,000 rows').waitFor({ timeout: 60_000 });
    await page.getByRole('button', { name: 'n', exact: true }).click();
    await expect.poll(() => parameter('sort')).toBe('n');
    await rowIs(1, '9 9');
    await page.getByRole('button', { name: 'n', exact: true }).click();
    await rowIs(1, '99 9');
    expect(new URL(page.url()).searchParams.getAll('filter')).toEqual(['load:ge:9', 'n:lt:100']);
    expect(parameter('sort')).toBe('-n');
    await expectUsable();
    // Once its view is removed just before, and is made again.
    const removed = { status: 202, json: { state: 'running' } };
    const isCsv = (headers: Record<string, string>) => headers.accept === 'text/csv';
    let asked = 0;
    await page.route('**/rows?**', (route, request) =>
      isCsv(request.headers()) && asked++ === 0 ? route.fulfill(removed) : route.fallback(),
    );
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'CSV' }).click();
    expect((await download).suggestedFilename()).toBe('big.csv');
    const lines = readFileSync(await (await download).path(), 'utf8')
      .trim()
      .split(/\r?\n/);
    expect(lines.slice(0, 3)).toEqual(['n,load', '99,9', '89,9']);
    expect(lines).toHaveLength(11);
    expect(asked).toBe(2);
    await page.unroute('**/rows?**');
    const whole = page.waitForEvent('download');
    await page.getByRole('link', { name: 'Parquet' }).click();
    expect(
      readFileSync(await (await whole).path())
        .subarray(0, 4)
        .toString(),
    ).toBe('PAR1');
    const rows = await parquetReadObjects({
      file: await asyncBufferFromFile(await (await whole).path()),
    });
    expect(rows.map(({ n }) => Number(n))).toEqual([99, 89, 79, 69, 59, 49, 39, 29, 19, 9]);
    // The filters leave ten rows, one to a bin or none.
    await expect.poll(() => other.locator('.bin[aria-label*=": 10."]').count()).toBe(1);
    await page.getByRole('button', { name: 'Leave out the filter load ≥ 9' }).click();
    await page.getByRole('button', { name: 'Leave out the filter n < 100' }).waitFor();
    await other.getByLabel('Condition').selectOption('eq');
    await other.getByLabel('Value').fill('many');
    await other.getByRole('button', { name: 'Filter', exact: true }).click();
    const told = page.locator('.grid-card').getByRole('alert');
    // Nothing lies over it.
    await told.getByText('must be').click({ trial: true });
    await told.getByRole('button', { name: 'Try again' }).click({ trial: true });
  });

  test('a column tells how often it has which values, and is filtered by a bar', async () => {
    await page.goto(`${stack.url}/console/${base}/table?name=big&column=load`);
    const bars = page.locator('.bin');
    await bars.first().waitFor();
    expect(await bars.last().getAttribute('aria-label')).toMatch(/ to 90: 1\. Show/);
    await expectUsable();
    await bars.last().click();
    await page.getByText('1 of 10,000,000 rows').waitFor({ timeout: 60_000 });
    await rowIs(1, `${PEAK} 90`);
  });

  test('a plot shows the one peak among all rows, and zooms to it', async () => {
    await page.goto(`${stack.url}/console/${base}/table?name=big`);
    await page.getByRole('button', { name: 'Plot' }).click();
    const plot = page.getByRole('slider', { name: 'load along n' });
    const top = page.locator('.plot-top');
    await expect.poll(() => top.textContent()).toBe('90');
    await expectUsable();
    const whereIs = async () => {
      const [from, to] = [Number(last('from') ?? 0), Number(last('to') ?? ROWS)];
      const box = await plot.boundingBox();
      if (!box) throw new Error('there is no plot');
      return { ...box, part: (PEAK - from) / (to - from), width: box.width };
    };
    const last = (name: string) => new URL(page.url()).searchParams.getAll(name).at(-1);
    for (let zoom = 1; zoom <= 4; zoom++) {
      const { x, y, width, height, part } = await whereIs();
      await page.mouse.move(x + width * Math.max(0, part - 0.03), y + height / 2);
      await page.mouse.down();
      await page.mouse.move(x + width * Math.min(0.999, part + 0.03), y + height / 2, { steps: 4 });
      await page.mouse.up();
      await expect.poll(() => new URL(page.url()).searchParams.getAll('from').length).toBe(zoom);
      await expect.poll(() => plot.getAttribute('aria-busy')).toBe('false');
      await expect.poll(() => top.textContent()).toBe('90');
    }
    expect(Number(last('to')) - Number(last('from'))).toBeLessThan(1_000);
    const { x, y, width, height, part } = await whereIs();
    await page.mouse.move(x + width * part, y + height / 2);
    await expect.poll(() => plot.getAttribute('aria-valuetext')).toContain(': 90 to 90 in one row');
    await expectUsable();
    await page.reload();
    await expect.poll(() => top.textContent()).toBe('90');
    await page.getByRole('button', { name: 'Zoom out' }).click();
    expect(new URL(page.url()).searchParams.getAll('from')).toHaveLength(3);
    await plot.focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Shift+PageDown');
    await page.keyboard.press('Enter');
    await expect.poll(() => new URL(page.url()).searchParams.getAll('from').length).toBe(4);
    await page.getByRole('button', { name: 'All' }).click();
    expect(last('from')).toBeUndefined();
  });

  test('what a file says is shown as it says it', async () => {
    await page.goto(`${stack.url}/console/${base}/content`);
    await page.getByRole('link', { name: 'small/one.csv', exact: true }).click();
    await rowIs(1, '9007199254740993 1.5 clear');
    expect(await at(2)).toBe('9007199254740995 missing snow, rain');
    await page.getByRole('button', { name: 'About sky' }).click();
    await page.getByRole('button', { name: 'snow, rain' }).click();
    await page.getByText('1 of 2 rows').waitFor();
    await rowIs(1, '9007199254740995 missing snow, rain');
    await page.getByRole('button', { name: 'Leave out the filter sky = snow, rain' }).click();
    await page.getByRole('button', { name: 'a, b', exact: true }).click();
    await rowIs(1, '9007199254740993 1.5 clear');
    await expectUsable();
  });

  test('the whole value of a cell is read and copied, by the pointer and by keys', async () => {
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    const copied = () => page.evaluate('navigator.clipboard.readText()');
    await page.goto(`${stack.url}/console/${base}/table?name=notes`);
    const bar = page.getByRole('region', { name: 'Chosen cell' });
    const value = bar.getByRole('textbox');
    const cell = page.getByRole('gridcell', { name: noteOf(0) });
    await cell.click();
    expect(await cell.getAttribute('aria-selected')).toBe('true');
    await bar.getByText('note, row 1').waitFor();
    expect(await value.inputValue()).toBe(noteOf(0));
    await expectUsable();
    await bar.getByRole('button', { name: 'Copy' }).click();
    await expect.poll(copied).toBe(noteOf(0));
    // From here on by keys.
    await grid().focus();
    const press = async (...keys: string[]) => {
      for (const key of keys) await page.keyboard.press(key);
    };
    await press('ArrowDown', 'Control+c');
    await expect.poll(copied).toBe(noteOf(1));
    await press('ArrowRight', 'ArrowRight');
    await bar.getByText('seen, row 2').waitFor();
    expect(await value.getAttribute('placeholder')).toBe('missing');
    await press('End', 'ArrowLeft');
    await expect.poll(() => value.inputValue()).toBe(noteOf(299));
    const chosen = page.locator('.grid-cell[aria-selected=true]');
    const id = await chosen.getAttribute('id');
    expect(await grid().getAttribute('aria-activedescendant')).toBe(id);
    const isSeen = async () => {
      const [inner, outer] = [await chosen.boundingBox(), await grid().boundingBox()];
      return (
        inner && outer && inner.y >= outer.y && inner.y + inner.height <= outer.y + outer.height
      );
    };
    expect(await isSeen()).toBe(true);
    await press('PageUp', 'ArrowUp');
    expect(await isSeen()).toBe(true);
    await press('Home');
    await expect.poll(() => value.inputValue()).toBe(noteOf(0));
    // It is told still where it is scrolled out of sight.
    await page.getByLabel('Row', { exact: true }).fill('200');
    await page.keyboard.press('Enter');
    await expect.poll(() => chosen.count()).toBe(0);
    expect(await value.inputValue()).toBe(noteOf(0));
    // Another height of the grid does not lead back to it.
    const drawn = await grid().locator('.grid-row').count();
    await page.setViewportSize({ width: 1280, height: 900 });
    await expect.poll(() => grid().locator('.grid-row').count()).toBeGreaterThan(drawn);
    expect(await chosen.count()).toBe(0);
    expect(await at(200)).toContain('Note 199:');
    await page.setViewportSize({ width: 1280, height: 720 });
    await bar.getByRole('button', { name: 'Close' }).click();
    await bar.waitFor({ state: 'detached' });
    // The first key chooses what is seen first.
    await press('ArrowDown');
    await bar.getByText('id, row 200').waitFor();
    await press('Escape');
    await bar.waitFor({ state: 'detached' });
    await page.setViewportSize({ width: 320, height: 844 });
    await press('ArrowRight', 'ArrowRight');
    await bar.getByText('note, row 200').waitFor();
    expect(await isSeen()).toBe(true);
    await page.setViewportSize({ width: 1280, height: 720 });
    await page.goto(`${stack.url}/console/${base}/table?name=small/one.csv`);
  });

  test('a value that has not come yet is not copied', async () => {
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    const copied = () => page.evaluate('navigator.clipboard.readText()');
    await page.goto(`${stack.url}/console/${base}/table?name=notes`);
    const bar = page.getByRole('region', { name: 'Chosen cell' });
    const value = bar.getByRole('textbox');
    await page.getByRole('gridcell', { name: noteOf(0) }).click();
    await page.keyboard.press('Control+c');
    await expect.poll(copied).toBe(noteOf(0));
    let send = () => {};
    const sent = new Promise<void>(resolve => {
      send = resolve;
    });
    await page.route('**/rows?*', async route => {
      await sent;
      await route.continue();
    });
    await page.keyboard.press('End');
    await bar.getByText('note, row 300').waitFor();
    await page.keyboard.press('Control+c');
    expect(await value.getAttribute('placeholder')).toBe('…');
    expect(await copied()).toBe(noteOf(0));
    expect(await bar.getByRole('button', { name: 'Copy' }).isDisabled()).toBe(true);
    send();
    await expect.poll(() => value.inputValue()).toBe(noteOf(299));
    await page.keyboard.press('Control+c');
    await expect.poll(copied).toBe(noteOf(299));
    await page.unroute('**/rows?*');
    await page.goto(`${stack.url}/console/${base}/table?name=small/one.csv`);
  });

  test('a plot of one column is drawn with none of the values of another', async () => {
    const query = new URLSearchParams({ name: 'small/one.csv', x: 'id', y: 'a, b' });
    await page.goto(`${stack.url}/console/${base}/table?${query}`);
    const top = page.locator('.plot-top');
    await expect.poll(() => top.textContent()).toBe('1.5');
    // As it is drawn before the answer comes, too.
    const release = await holdRequests(page, '**/series?**');
    await page.locator('label', { hasText: 'Plot' }).locator('select').selectOption('id');
    await page.getByRole('slider', { name: 'id along id' }).waitFor();
    await page.getByText('Reading both columns').waitFor();
    release();
    await expect.poll(() => top.textContent()).toBe('9007199254740995');
    await page.unroute('**/series?**');
    await page.goto(`${stack.url}/console/${base}/table?name=small/one.csv`);
  });

  test('a plot of some rows is drawn with none of the values of others', async () => {
    const query = new URLSearchParams({ name: 'physics', x: 't', y: 't' });
    await page.goto(`${stack.url}/console/${base}/table?${query}`);
    const top = page.locator('.plot-top');
    await expect.poll(() => top.textContent()).toBe('1.5');
    const release = await holdRequests(page, '**/series?**');
    // As it is for one more filter, without the page being loaded again.
    await page.evaluate(`(() => {
      const url = new URL(location.href);
      url.searchParams.append('filter', 't:lt:1');
      history.pushState(null, '', url);
    })()`);
    await page.getByText('Reading both columns').waitFor();
    expect(await top.count()).toBe(0);
    release();
    await expect.poll(() => top.textContent()).toBe('0');
    await page.unroute('**/series?**');
    await page.goto(`${stack.url}/console/${base}/table?name=small/one.csv`);
  });

  test('a table that takes the place of another is shown with its own columns', async () => {
    const mid = base.split('/')[3] ?? '';
    const way = page.getByRole('navigation', { name: 'Where you are' });
    await way.getByRole('link').last().click();
    await makeTable(client, { mid, aid: 'small/one.csv', csv: 'q\n7\n' });
    await page.getByRole('link', { name: 'small/one.csv', exact: true }).click();
    await page.getByText('One row, one column').waitFor();
    await rowIs(1, '7');
    // Another one, while it is looked at.
    await makeTable(client, { mid, aid: 'small/one.csv', csv: 'r,s\n8,9\n' });
    await page.getByText('One row, 2 columns').waitFor();
    await rowIs(1, '8 9');
    // And another one, before the page has asked for it: its rows are not those that are seen.
    await page.route('**/metadata', route => route.abort());
    await makeTable(client, { mid, aid: 'small/one.csv', csv: 't\n1\n2\n' });
    await page.getByRole('button', { name: 'CSV' }).click();
    await page.getByRole('alert').getByText('Another table has taken the place').waitFor();
    await page.unroute('**/metadata');
    await page.getByText('2 rows, one column').waitFor();
  });

  test('of many columns those are read that are seen', async () => {
    await page.goto(`${stack.url}/console/${base}/table?name=wide`);
    await page.getByText('One row, 60 columns').waitFor();
    await expect.poll(async () => (await at(1))?.startsWith('0 1 2 3')).toBe(true);
    expect(await at(1)).not.toContain('59');
    await grid().evaluate(element => element.scrollTo(element.scrollWidth, 0));
    await expect.poll(async () => (await at(1))?.endsWith('57 58 59')).toBe(true);
    await page.getByRole('button', { name: 'About column 59' }).waitFor();
  });

  test('numbers are seen to their ends, in one notation whatever the language', async () => {
    const german = await openConsole(browser, stack.url, {
      path: `${base}/table?name=physics&x=t&y=mass`,
      locale: 'de-DE',
    });
    await logInToConsole(german.page, stack);
    const cells = german.page.locator('.grid-cell[data-type=number]');
    const texts = () => cells.allTextContents();
    await expect
      .poll(texts)
      .toEqual([
        '0',
        '1.67e-27',
        '4.489712379304426e-9',
        '1.5',
        '9.1e-31',
        '-1.7976931348623157e+308',
      ]);
    const cut = await cells.evaluateAll(all =>
      all.filter(cell => cell.scrollWidth > cell.clientWidth).map(cell => cell.textContent),
    );
    expect(cut).toEqual([]);
    const labels = german.page.locator('.plot-top, .plot-bottom, .plot-times span');
    await expect.poll(() => labels.allTextContents()).toEqual(['1.67e-27', '9.1e-31', '0', '1.5']);
    await german.page.goto(`${stack.url}/console/${base}/table?name=big`);
    await german.page.getByText(`${MAX} rows, 2 columns`).waitFor();
    expect(german.faults).toEqual([]);
    await german.page.context().close();
  });

  test('numbers have the digits that the service writes, also where JavaScript writes others', async () => {
    await page.goto(`${stack.url}/console/${base}/table?name=digits`);
    for (const [n, text] of ['9223372036854775808', '-0', '1e+21', '0.5'].entries())
      await rowIs(n + 1, text);
    await page.getByRole('gridcell', { name: '9223372036854775808' }).click();
    const bar = page.getByRole('region', { name: 'Chosen cell' });
    expect(await bar.getByRole('textbox').inputValue()).toBe('9223372036854775808');
  });

  test('an array shows its shape and a part of it', async () => {
    await page.goto(`${stack.url}/console/${base}/content`);
    await page.getByRole('link', { name: 'grid', exact: true }).click();
    await page.getByText('2 × 3 of type integer, from 0 to 5').waitFor();
    const cells = page.getByRole('region', { name: 'Values' }).getByRole('cell');
    await expect.poll(() => cells.allTextContents()).toEqual(['0', '1', '2', '3', '4', '5']);
    const heads = (role: 'columnheader' | 'rowheader') =>
      page.getByRole('region', { name: 'Values' }).getByRole(role).allTextContents();
    expect(await heads('columnheader')).toEqual(['Index', '0', '1', '2']);
    expect(await heads('rowheader')).toEqual(['0', '1']);
    await page.getByLabel('Part').fill('1, 1:');
    await page.getByRole('button', { name: 'Show' }).click();
    await expect.poll(() => cells.allTextContents()).toEqual(['4', '5']);
    expect(await heads('rowheader')).toEqual(['1', '2']);
    await page.getByLabel('Part').fill(':,1');
    await page.getByRole('button', { name: 'Show' }).click();
    await expect.poll(() => cells.allTextContents()).toEqual(['1', '4']);
    expect(parameter('slice')).toBe(':,1');
    await expectUsable();
    await page.getByLabel('Part').fill('7');
    await page.getByRole('button', { name: 'Show' }).click();
    expect(await page.getByRole('alert').textContent()).toContain('Part: must fit the shape');
  });

  test('values of an array stand under their own indices alone', async () => {
    await page.goto(`${stack.url}/console/${base}/array?name=grid`);
    const values = page.getByRole('region', { name: 'Values' });
    await values.getByRole('cell').first().waitFor();
    let release = () => {};
    const held = new Promise<void>(resolve => {
      release = resolve;
    });
    const slices = (url: URL) => url.pathname.endsWith('/arrays/grid');
    await page.route(slices, async route => {
      await held;
      await route.continue();
    });
    await page.getByLabel('Part').fill('1:,1:');
    await page.getByRole('button', { name: 'Show' }).click();
    await page.waitForURL(/slice=/);
    await page.getByText('Reading the values').waitFor();
    expect(await values.count()).toBe(0);
    release();
    await expect.poll(() => values.getByRole('cell').allTextContents()).toEqual(['4', '5']);
    await page.unroute(slices);
  });

  test('an array that takes the place of another is shown with its own shape', async () => {
    const mid = base.split('/')[3] ?? '';
    const replace = (bytes: number[]) => {
      const file = Buffer.concat([formatNpyHeader('|u1', [2, 2]), Buffer.from(bytes)]);
      return makeArray(client, { mid, aid: 'replaced', file });
    };
    await replace([1, 2, 3, 4]);
    await page.goto(`${stack.url}/console/${base}/array?name=replaced`);
    const cells = page.getByRole('region', { name: 'Values' }).getByRole('cell');
    await expect.poll(() => cells.allTextContents()).toEqual(['1', '2', '3', '4']);
    // While it is looked at.
    await replace([5, 6, 7, 8]);
    await page.getByText('2 × 2 of type integer, from 5 to 8').waitFor();
    await expect.poll(() => cells.allTextContents()).toEqual(['5', '6', '7', '8']);
  });

  test('no script threw, and nothing broke the policy', () => {
    expect(opened.faults).toEqual([]);
  });
});

/** Waits until it scrolls no more. */
const SETTLED = `(async () => {
  const element = document.querySelector('.grid');
  for (let at = -1, same = 0; same < 10; at = element.scrollTop) {
    await new Promise(resolve => requestAnimationFrame(resolve));
    same = element.scrollTop === at ? same + 1 : 0;
  }
})()`;
