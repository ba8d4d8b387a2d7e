import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { skipTest } from '../harness/skip.ts';
import { describeForms } from '../harness/stacks/forms.ts';
import { SECTIONS } from './cases/all.ts';
import { LIMITED, LIMITS } from './cases/limited.ts';
import type { Row } from './row.ts';
import { type Prefix, Tools } from './tools.ts';
import { missingHost, startWorld, type World } from './world.ts';

// The whole interface, row by row.
const DOCUMENTED: Prefix = '/api';
/** Every operation exists with and without the prefix, with the same answers. */
const PREFIXES: Prefix[] = [DOCUMENTED, ''];

describeForms(undefined, 'the interface', form => {
  // The mounts of the routes are the same on both forms.
  const prefixes = form.name === 'embedded' ? PREFIXES : [DOCUMENTED];
  describe('as it is', () => testSections(SECTIONS, () => startWorld(form), prefixes));
  describe('under limits', () => {
    testSections({ launch: LIMITED }, () => startWorld(form, LIMITS), prefixes);
  });
});

function testSections(
  sections: Record<string, Row[]>,
  open: () => Promise<World>,
  prefixes: Prefix[],
): void {
  let world: World;
  beforeAll(async () => {
    world = await open();
  });
  afterAll(() => world?.end());

  for (const [section, rows] of Object.entries(sections)) {
    describe(section, () => {
      for (const row of rows) {
        test(row.name, { timeout: 180_000 }, async context => {
          const missing = row.needs === 'host' ? missingHost() : undefined;
          if (missing) skipTest(context, missing);
          const runs: Tools[] = [];
          for (const prefix of prefixes) runs.push(await run(row, new Tools(world, prefix)));
          const [first, ...others] = runs;
          expect([...(first?.asked ?? [])]).toEqual(expect.arrayContaining(row.of));
          for (const other of others) expect(other.seen).toEqual(first?.seen);
        });
      }
    });
  }
}

async function run(row: Row, tools: Tools): Promise<Tools> {
  await row.run(tools);
  return tools;
}
