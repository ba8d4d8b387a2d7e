import { afterAll, beforeAll, expect, test } from 'vitest';
import { withDatabase } from '../harness/databases/migrated-database.ts';
import { PLANTED_FAULTS, plant } from './planted-faults.ts';
import { runSchedule } from './schedules.ts';
import { scheduleOf, search, shrink } from './search.ts';
import { SimulatedDatabase } from './simulated-database.ts';
import { installVirtualTime } from './virtual-time.ts';

/** `npm run test:simulation` sets these. */
const { SIMULATION_RUNS, SIMULATION_SEED, SIMULATION_FAULTS } = process.env;
const isLong = SIMULATION_RUNS !== undefined;
const RUNS = Number(SIMULATION_RUNS ?? 80);
const SEED = Number(SIMULATION_SEED ?? 1);
/** Schedules within which the long form finds each fault. */
const WITHIN = 2_000;

const given = withDatabase('simulation');
let database: SimulatedDatabase;
let restore = () => {};

beforeAll(async () => {
  database = new SimulatedDatabase(given.url);
  await database.prepare();
  restore = installVirtualTime();
});
afterAll(async () => {
  restore();
  await database.close();
});

test.skipIf(SIMULATION_FAULTS)(
  `every invariant holds in ${RUNS} schedules from seed ${SEED}`,
  async () => {
    const began = performance.now();
    const onRun = (run: number) => {
      if (!isLong || run % 500 > 0) return;
      const seconds = (performance.now() - began) / 1_000;
      console.log(`${run} schedules, ${(run / seconds).toFixed(1)} a second`);
    };
    const found = await search(database, { seed: SEED, runs: RUNS, onRun });
    if (found) expect.fail(`seed ${found.seed}: ${await shrink(database, found)}`);
  },
  isLong ? 0 : 600_000,
);

test.skipIf(isLong)('a schedule makes the same happen each time it runs', async () => {
  for (const seed of [2, 55, 377]) {
    const told = () => runSchedule(database, scheduleOf(seed));
    expect(await told()).toBe(await told());
  }
});

test.each(PLANTED_FAULTS.filter(({ seed }) => seed !== undefined || SIMULATION_FAULTS))(
  'it finds out that $name',
  async fault => {
    const { rewrite, count } = plant(fault);
    database.rewrite = rewrite;
    try {
      const seed = SIMULATION_FAULTS ? SEED : (fault.seed ?? SEED);
      const found = await search(database, { seed, runs: SIMULATION_FAULTS ? WITHIN : 1 });
      expect(count(), found?.story).toBeGreaterThan(0);
      if (SIMULATION_FAULTS)
        console.log(
          `${fault.name}: seed ${found?.seed}, after ${found?.runs} schedules: ${found?.story.split('\n')[0]}`,
        );
      expect(found, 'no schedule found it').toBeDefined();
    } finally {
      database.rewrite = text => text;
    }
  },
  SIMULATION_FAULTS ? 0 : 120_000,
);
