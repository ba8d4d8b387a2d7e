import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { describeForms } from '../harness/forms.ts';
import { skipTest } from '../harness/skip.ts';
import { SECTIONS } from './cases/all.ts';
import { LIMITED, LIMITS } from './cases/limited.ts';
import type { Row } from './row.ts';
import { readTarget } from './settings.ts';
import { Tools } from './tools.ts';
import { findWorld, startWorld, type World } from './world.ts';

// The whole interface, row by row, on stacks of its own or on the service that WINDLASS_URL names.
const target = readTarget();
if (target) {
  describe(`the interface, at ${target.url}`, () =>
    testSections(SECTIONS, () => findWorld(target)));
} else {
  describeForms(undefined, 'the interface', form => {
    describe('as it is', () => testSections(SECTIONS, () => startWorld(form)));
    describe('under limits', () => {
      testSections({ 'decisions, launch': LIMITED }, () => startWorld(form, LIMITS));
    });
  });
}

function testSections(sections: Record<string, Row[]>, open: () => Promise<World>): void {
  let world: World;
  beforeAll(async () => {
    world = await open();
  });
  afterAll(() => world?.end());

  for (const [section, rows] of Object.entries(sections)) {
    describe(section, () => {
      for (const row of rows) {
        test(row.name, { timeout: 180_000 }, async context => {
          const missing = world.lacks(row.needs);
          if (missing) skipTest(context, missing);
          const documented = await run(row, new Tools(world, '/api'));
          const bare = await run(row, new Tools(world, ''));
          // Every operation exists with and without the prefix, with the same answers.
          expect(bare.seen).toEqual(documented.seen);
          expect([...documented.asked]).toEqual(expect.arrayContaining(row.of));
        });
      }
    });
  }
}

async function run(row: Row, tools: Tools): Promise<Tools> {
  await row.run(tools);
  return tools;
}
