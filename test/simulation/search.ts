import fc from 'fast-check';
import { runSchedule, type Schedule, schedules } from './schedules.ts';
import type { SimulatedDatabase } from './simulated-database.ts';

export interface Found {
  /** The seed of the schedule that failed. */
  seed: number;
  /** Schedules until then. */
  runs: number;
  /** What broke, and the story of the schedule. */
  story: string;
}

/** How long a failing schedule is made smaller. */
const SHRINK_MS = 60_000;

/** Runs the schedules of a number of seeds in a row; returns the first that fails. */
export async function search(
  database: SimulatedDatabase,
  { seed, runs, onRun = () => {} }: { seed: number; runs: number; onRun?: (run: number) => void },
): Promise<Found | undefined> {
  for (let run = 0; run < runs; run++) {
    const story = await check(database, seed + run, { endOnFailure: true });
    if (story !== undefined) return { seed: seed + run, runs: run + 1, story };
    onRun(run + 1);
  }
  return undefined;
}

/** The story of the smallest schedule that fails, found from this one. */
export async function shrink(database: SimulatedDatabase, { seed, story }: Found): Promise<string> {
  return (await check(database, seed, { interruptAfterTimeLimit: SHRINK_MS })) ?? story;
}

/** The one that a search looks at for this seed. */
export function scheduleOf(seed: number): Schedule {
  const [schedule = []] = fc.sample(schedules, { seed, numRuns: 1 });
  return schedule;
}

/** Undefined where the schedule of the seed does not fail. */
async function check(
  database: SimulatedDatabase,
  seed: number,
  parameters: fc.Parameters<[never]>,
): Promise<string | undefined> {
  const property = fc.asyncProperty(schedules, async schedule => {
    await runSchedule(database, schedule);
  });
  const result = await fc.check(property, { ...parameters, seed, numRuns: 1 } as object);
  if (!result.failed) return undefined;
  return result.errorInstance instanceof Error ? result.errorInstance.message : 'no error';
}
