/**
 * `npm run test:simulation -- [--runs N] [--seed S] [--faults]`: random schedules of the job core, as many as one likes. With
 * --faults it looks for a schedule that finds each planted fault instead. See test/simulation/README.md.
 */
import { parseArgs } from 'node:util';
import { startVitest } from 'vitest/node';

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '10000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000_000) },
    faults: { type: 'boolean', default: false },
  },
});
for (const [name, value] of [['--runs', values.runs] as const, ['--seed', values.seed] as const])
  if (!/^[1-9]\d{0,8}$/.test(value)) {
    console.error(`${name} takes a number from 1 to 999999999, not ${JSON.stringify(value)}.`);
    process.exit(2);
  }
process.env.SIMULATION_RUNS = values.runs;
process.env.SIMULATION_SEED = values.seed;
if (values.faults) process.env.SIMULATION_FAULTS = '1';
console.log(`Schedules from seed ${values.seed} on.`);

const vitest = await startVitest('test', ['test/simulation/'], {
  watch: false,
  project: 'acceptance',
  // Without the planted faults, whose known seeds `npm test` runs.
  ...(values.faults ? {} : { testNamePattern: 'every invariant' }),
});
await vitest.close();
process.exit(process.exitCode ?? 0);
