import { afterAll } from 'vitest';
import { type FleetLease, holdFleetServers, missingFleet } from './fleet-servers.ts';
import { startOwnOrShared } from './shared-stacks.ts';
import { describeUnless } from './skip.ts';
import type { Stack, StackOptions } from './stack.ts';

export interface Form {
  name: 'embedded' | 'fleet';
  /** startStack() on this form. */
  start(options?: StackOptions): Promise<Stack>;
}

let held: Promise<FleetLease> | undefined;

/** Runs the tests of `body` once on each form of Windlass: what is true over HTTP is true of both. */
export function describeForms(
  missing: Parameters<typeof describeUnless>[0],
  name: string,
  body: (form: Form) => void,
): void {
  describeUnless(missing, `${name}, embedded`, () =>
    body({ name: 'embedded', start: (options = {}) => startOwnOrShared(options) }),
  );
  describeUnless(missing ?? missingFleet(), `${name}, fleet`, () =>
    body({ name: 'fleet', start: startOnFleet }),
  );
  // The fleets of a file run on the same servers, which end with the file.
  afterAll(async () => {
    const lease = held;
    held = undefined;
    await (await lease?.catch(() => undefined))?.release();
  });
}

async function startOnFleet(options: StackOptions = {}): Promise<Stack> {
  held ??= holdFleetServers();
  await held;
  return startOwnOrShared({ ...options, form: 'fleet' });
}
