import fc from 'fast-check';
import type { SimulatedDatabase } from './simulated-database.ts';
import { type Loss, SimulatedWorld } from './simulated-world.ts';

/** One thing that a schedule makes happen. Numbers choose among what there is, modulo its count. */
type Command =
  | { type: 'start'; kind: 'agent' | 'plain' | 'parse'; owner: 'ann' | 'bob' }
  | { type: 'cancel'; job: number }
  | { type: 'step'; which: number; unheard: boolean }
  | { type: 'goOn'; steps: number }
  | { type: 'advance'; ms: number }
  | { type: 'lose'; which: number; how: Loss }
  | { type: 'crash'; which: number }
  | { type: 'take'; entry: number; worker: number; again: boolean }
  | { type: 'drop'; entry: number }
  | { type: 'clock'; ms: number }
  | { type: 'day' };

const some = fc.nat({ max: 23 });
const MAX_JOBS = 4;

const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant('start' as const),
      kind: fc.constantFrom('agent', 'plain', 'parse'),
      owner: fc.constantFrom('ann', 'bob'),
    }),
  },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('cancel' as const), job: some }) },
  {
    weight: 12,
    arbitrary: fc.record({
      type: fc.constant('step' as const),
      which: some,
      unheard: fc.boolean(),
    }),
  },
  {
    weight: 10,
    arbitrary: fc.record({
      type: fc.constant('goOn' as const),
      steps: fc.integer({ min: 1, max: 16 }),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant('advance' as const),
      ms: fc.constantFrom(300, 1_000, 3_000, 6_500, 11_000, 16_000),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      type: fc.constant('lose' as const),
      which: some,
      how: fc.constantFrom('answer', 'request', 'late'),
    }),
  },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('crash' as const), which: some }) },
  {
    weight: 5,
    arbitrary: fc.record({
      type: fc.constant('take' as const),
      entry: some,
      worker: some,
      again: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('drop' as const), entry: some }) },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant('clock' as const),
      ms: fc.constantFrom(-15_000, 15_000),
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('day' as const) }) },
);

export type Schedule = Command[];

/** Without the bias to small ones: what breaks needs several steps. */
export const schedules: fc.Arbitrary<Schedule> = fc.noBias(
  fc.array(command, { minLength: 20, maxLength: 60, size: 'max' }),
);

/**
 * Runs a schedule, and then whatever is left with no more faults. Returns the story of the schedule; throws what broke, with
 * the story until then.
 */
export async function runSchedule(
  database: SimulatedDatabase,
  schedule: Schedule,
): Promise<string> {
  const world = new SimulatedWorld(database);
  let jobs = 0;
  try {
    await world.begin();
    for (const given of [{ type: 'start', kind: 'agent', owner: 'ann' } as const, ...schedule]) {
      if (given.type === 'start' && ++jobs > MAX_JOBS) continue;
      await perform(world, given, jobs);
      world.check();
    }
    await world.end();
    return world.named(world.story);
  } catch (error) {
    const what = error instanceof Error ? error.message : String(error);
    throw new Error(world.named(`${what}\n${world.story}`), { cause: error });
  } finally {
    world.stop();
  }
}

async function perform(world: SimulatedWorld, given: Command, jobs: number): Promise<unknown> {
  switch (given.type) {
    case 'start':
      return world.start({ name: `job ${jobs}`, owner: given.owner, kind: given.kind });
    case 'cancel':
      return world.cancel(given.job);
    case 'step':
      return world.step(given.which, given.unheard);
    case 'goOn':
      return world.goOn(given.steps);
    case 'advance':
      return world.advance(given.ms);
    case 'lose':
      return world.lose(given.which, given.how);
    case 'crash':
      return world.crash(given.which);
    case 'take':
      return world.take(given.entry, given.worker, given.again);
    case 'drop':
      return world.dropEntry(given.entry);
    case 'clock':
      return world.setClock(given.ms);
    case 'day':
      world.advance(90_000_000);
      return world.removeOld();
  }
}
