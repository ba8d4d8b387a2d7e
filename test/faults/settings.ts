import { randomInt } from 'node:crypto';
import { Random } from '../harness/random.ts';

/** `npm run test:faults` runs every fault in full, `npm test` each a few times. */
export const isFull = process.env.FAULTS === 'full';

/** What is drawn differs from run to run, and a failure names the seed. */
export const seed = Number(process.env.FAULT_SEED || randomInt(1, 2 ** 31));

/** The seed of what would find something new each time: `npm test` looks at the same, the full form goes on looking. */
export const steadySeed = isFull ? seed : Number(process.env.FAULT_SEED || 1);

/** Runs a test whose faults are drawn from the seed; a failure names the seed that makes the same draws. */
export async function withSeed(run: (random: Random) => Promise<void>): Promise<void> {
  try {
    await run(new Random(seed));
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    const form = isFull ? 'FAULTS=full ' : '';
    throw new Error(`With ${form}FAULT_SEED=${seed}: ${message}`, { cause });
  }
}
