import { afterAll } from 'vitest';
import { describeUnless, type SkipReason } from '../skip.ts';
import { type FleetLease, holdFleetServers, missingFleet } from './fleet-servers.ts';
import { type SharedStackOptions, startOwnOrShared } from './shared-stacks.ts';
import type { Stack } from './stack.ts';

export interface Form {
  name: 'embedded' | 'fleet';
  /** Gives a stack of this form, shared with other files unless the options say `alone`. */
  start(options?: SharedStackOptions): Promise<Stack>;
}

const EMBEDDED: Form = {
  name: 'embedded',
  start: (options = {}) => startOwnOrShared(options),
};
const FLEET: Form = { name: 'fleet', start: startOnFleet };

let fleetLease: Promise<FleetLease> | undefined;

/**
 * Runs the tests of `body` on the embedded form. `npm test -- --both-forms` runs them on the fleet form as well: the code
 * they test is the same on both, see docs/testing.md.
 */
export function describeStack(
  missing: SkipReason | undefined,
  name: string,
  body: (form: Form) => void,
): void {
  if (process.env.TEST_FORMS === 'both') describeForms(missing, name, body);
  else describeUnless(missing, name, () => body(EMBEDDED));
}

/** Runs the tests of `body` once on each form: for code that differs by form, such as the queue, the object store and several APIs. */
export function describeForms(
  missing: SkipReason | undefined,
  name: string,
  body: (form: Form) => void,
): void {
  describeUnless(missing, `${name}, embedded`, () => body(EMBEDDED));
  describeUnless(missing ?? missingFleet(), `${name}, fleet`, () => body(FLEET));
  // The fleets of a file run on the same servers, which end with the file.
  afterAll(async () => {
    const lease = fleetLease;
    fleetLease = undefined;
    await (await lease?.catch(() => undefined))?.release();
  });
}

async function startOnFleet(options: SharedStackOptions = {}): Promise<Stack> {
  fleetLease ??= holdFleetServers();
  await fleetLease;
  return startOwnOrShared({ ...options, form: 'fleet' });
}
