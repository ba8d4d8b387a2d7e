import { dim, expect } from '../console.ts';
import type { DemoContext } from '../context.ts';
import { killWorker } from '../kill-worker.ts';
import { STATIONS, type WeatherData } from '../weather-data.ts';

interface Page {
  columns: string[];
  rows: unknown[][];
}

interface Metadata {
  rows: number;
  columns: { name: string; type: string; min: unknown; max: unknown; nulls: number }[];
}

interface Histogram {
  nulls: number;
  bins: { from: number; to: number; count: number }[];
}

/** Follows the parse job to its end and kills its first worker. */
export async function watchParse(demo: DemoContext, job: string): Promise<void> {
  const { out, client } = demo;
  const killing = killWorker(demo, job);
  killing.catch(() => {});
  const progress = out.progress('parsing');
  let state = '';
  for await (const { event, data } of client.events(job)) {
    if (event === 'progress') progress(Number(data.progress));
    if (event !== 'state' || data.state === state) continue;
    state = String(data.state);
    if (state === 'succeeded') progress(1);
    const { detail } = (data.error ?? {}) as { detail?: string };
    out.note(dim(detail ? `${state}: ${detail}` : state));
  }
  expect(state === 'succeeded', `the parse ended as ${state}`);
  if (!(await killing)) out.note('It ended before a worker could be killed.');
}

/** Prints the metadata and first rows of the table, and checks that no row is lost or duplicated. */
export async function showTable(
  { client, out }: DemoContext,
  path: string,
  { rows, temperatures }: WeatherData,
): Promise<void> {
  const metadata = await client.get<Metadata>(`${path}/metadata`);
  const missing = temperatures.filter(Number.isNaN).length;
  const column = metadata.columns.find(({ name }) => name === 'temperature');
  expect(metadata.rows === rows, `${rows} rows were sent, the table has ${metadata.rows}`);
  expect(
    column?.nulls === missing,
    `${missing} temperatures are missing, the metadata say ${column?.nulls}`,
  );
  const kinds = metadata.columns.map(({ name, type }) => `${name} (${type})`);
  out.note(`${metadata.rows} rows: ${kinds.join(', ')}`);
  const page = await client.get<Page>(`${path}/rows?limit=5`);
  expect(page.rows.length === 5 && page.rows[0]?.[0] === 1, 'the first rows are wrong');
  out.table(page.columns, page.rows);
  const last = await client.get<Page>(`${path}/rows?offset=${rows - 1}&columns=number`);
  expect(last.rows[0]?.[0] === rows, 'the last row is wrong');
}

const CHOSEN = 1;

/** Reads a filtered and sorted view: a job makes it once, later requests only read it. */
export async function showView(
  { client, out }: DemoContext,
  path: string,
  { temperatures, stations }: WeatherData,
): Promise<void> {
  const query = new URLSearchParams({
    filter: `station:eq:${STATIONS[CHOSEN]}`,
    sort: '-temperature,number',
    limit: '5',
  });
  out.note(dim(`GET …/rows?${decodeURIComponent(query.toString())}`));
  const page = await client.get<Page>(`${path}/rows?${query}`);
  const expected = [...temperatures.keys()]
    .filter(n => stations[n] === CHOSEN && !Number.isNaN(temperatures[n]))
    .sort((a, b) => (temperatures[b] ?? 0) - (temperatures[a] ?? 0) || a - b)
    .slice(0, 5);
  const at = page.columns.indexOf('number');
  const found = page.rows.map(row => Number(row[at]) - 1);
  expect(String(found) === String(expected), `rows ${expected} were expected, ${found} came`);
  out.table(page.columns, page.rows);
  const again = performance.now();
  await client.get<Page>(`${path}/rows?${query}&offset=5`);
  out.note(`the next page took ${Math.round(performance.now() - again)} ms`);
}

const EDGE = 1e-9;

/** Prints a histogram and compares its counts with the uploaded file. */
export async function showHistogram(
  { client, out }: DemoContext,
  path: string,
  { rows, temperatures }: WeatherData,
): Promise<void> {
  const histogram = await client.get<Histogram>(`${path}/histogram?column=temperature&bins=16`);
  const { bins, nulls } = histogram;
  const counted = bins.reduce((sum, bin) => sum + bin.count, nulls);
  expect(counted === rows, `${counted} of ${rows} values were counted`);
  for (const { from, to, count } of bins) {
    // Rounding decides to which bin a value on an edge belongs.
    const inside = temperatures.filter(value => value > from + EDGE && value < to - EDGE).length;
    const around = temperatures.filter(value => value > from - EDGE && value < to + EDGE).length;
    expect(
      count >= inside && count <= around,
      `${inside} values lie between ${from} and ${to}, the histogram says ${count}`,
    );
  }
  const entries = bins.map(({ from, count }) => ({ label: `${from.toFixed(1)} °C`, count }));
  out.bars(entries);
  out.note(`${nulls} are missing`);
}
