import { describe, expect, test } from 'vitest';
import { MIGRATIONS, readMigrations, readStatement } from './migration-files.ts';
import { findUnsafe } from './migration-rules.ts';

const problems = (...statements: string[]) =>
  findUnsafe([{ tag: '0041_tested', statements: statements.map(readStatement) }]).map(
    ({ problem }) => problem,
  );

test('the migrations of this checkout can be applied beside running programs, on grown tables', () => {
  expect(findUnsafe(readMigrations(MIGRATIONS))).toEqual([]);
});

describe('allowed is', () => {
  test.each([
    'CREATE TABLE "leases" ("job" text PRIMARY KEY NOT NULL);',
    'ALTER TABLE "jobs" ADD COLUMN "weight" integer;',
    'ALTER TABLE "jobs" ADD COLUMN "weight" numeric(10, 2) DEFAULT 0 NOT NULL;',
    `ALTER TABLE "jobs" ADD COLUMN "tags" text[] DEFAULT '{"a(b)"}'::text[] NOT NULL;`,
    'ALTER TABLE "jobs" ADD COLUMN "seen" timestamp with time zone DEFAULT now() NOT NULL;',
    'CREATE INDEX CONCURRENTLY "jobs_x" ON "jobs" USING btree ("kind");',
    '-- contract: not needed since 82c58c9\nDROP INDEX CONCURRENTLY "jobs_due";',
    'ALTER TABLE "jobs" ADD CONSTRAINT "c" CHECK ("weight" > 0) NOT VALID;',
    'ALTER TABLE "jobs" VALIDATE CONSTRAINT "c";',
    'ALTER TABLE "jobs" SET (autovacuum_vacuum_scale_factor = 0.01);',
    'ALTER TABLE "jobs" ALTER COLUMN "payload" DROP NOT NULL;',
    'CREATE FUNCTION job_clock() RETURNS timestamptz LANGUAGE sql AS $$ select now(); select 1 $$;',
    '-- batches: "jobs" by "id"\nUPDATE "jobs" SET "weight" = 1 WHERE "id" = ANY($1);',
    '-- contract: not needed since 82c58c9\nALTER TABLE "jobs" DROP COLUMN "weight";',
  ])('%s', statement => {
    expect(problems(statement)).toEqual([]);
  });

  test('anything on a table that the same migration creates', () => {
    expect(
      problems(
        'CREATE TABLE "leases" ("job" text PRIMARY KEY NOT NULL);',
        'CREATE UNIQUE INDEX "leases_x" ON "leases" USING btree ("job");',
        'ALTER TABLE "leases" ADD CONSTRAINT "fk" FOREIGN KEY ("job") REFERENCES "public"."jobs"("id");',
      ),
    ).toEqual([]);
  });

  test('NOT NULL, once a check of it is valid', () => {
    const steps = [
      'ALTER TABLE "jobs" ADD CONSTRAINT "c" CHECK ("weight" is not null) NOT VALID;',
      'ALTER TABLE "jobs" VALIDATE CONSTRAINT "c";',
      '-- contract: not needed since 82c58c9\nALTER TABLE "jobs" ALTER COLUMN "weight" SET NOT NULL;',
    ];
    expect(problems(...steps)).toEqual([]);
    expect(problems(...steps.slice(2))).toEqual([expect.stringContaining('validate it')]);
  });
});

describe('refused is', () => {
  test.each([
    ['ALTER TABLE "jobs" DROP COLUMN "worker";', 'contract'],
    ['ALTER TABLE "jobs" RENAME COLUMN "worker" TO "holder";', 'contract'],
    ['ALTER TABLE "jobs" RENAME TO "work";', 'contract'],
    ['DROP TABLE "workers";', 'contract'],
    ['ALTER TABLE "jobs" ALTER COLUMN "worker" SET NOT NULL;', 'contract'],
    ['ALTER TABLE "jobs" ALTER COLUMN "epoch" SET DATA TYPE bigint;', 'writes the table anew'],
    ['CREATE INDEX "jobs_x" ON "jobs" USING btree ("kind");', 'concurrently'],
    ['DROP INDEX "jobs_due";', 'concurrently'],
    ['-- its successor is jobs_x\nDROP INDEX CONCURRENTLY "jobs_due";', 'contract'],
    ['ALTER TABLE "jobs" ADD COLUMN "weight" integer NOT NULL;', 'a default'],
    ['ALTER TABLE "jobs" ADD COLUMN "key" uuid DEFAULT gen_random_uuid();', 'differs'],
    ['ALTER TABLE "jobs" ADD COLUMN "at" timestamptz DEFAULT clock_timestamp();', 'differs'],
    ['ALTER TABLE "jobs" ADD COLUMN "n" bigserial;', 'apart'],
    ['ALTER TABLE "jobs" ADD COLUMN "host" text REFERENCES "hosts"("name");', 'apart'],
    ['ALTER TABLE "jobs" ADD CONSTRAINT "c" CHECK ("epoch" > 0);', 'NOT VALID'],
    ['ALTER TABLE "jobs" ADD CONSTRAINT "u" UNIQUE("owner");', 'USING INDEX'],
    ['ALTER TABLE "jobs" ADD COLUMN "a" text, DROP COLUMN "worker";', 'One action'],
    ['UPDATE "jobs" SET "epoch" = 1;', 'batches'],
    ['-- batches: "jobs" by "id"\nUPDATE "jobs" SET "epoch" = 1;', 'any($1)'],
    ['ALTER TABLE "jobs" ADD COLUMN "a" text; DROP TABLE "workers";', 'breakpoint'],
    ['VACUUM FULL "jobs";', 'No such statement'],
  ])('%s', (statement, said) => {
    expect(problems(statement)).toEqual([expect.stringContaining(said)]);
  });

  test('an index dropped without that comment, from migration 41 on', () => {
    const statements = [readStatement('DROP INDEX CONCURRENTLY "jobs_due";')];
    const found = findUnsafe(['0040_a', '0041_b'].map(tag => ({ tag, statements })));
    expect(found.map(({ where }) => where)).toEqual(['0041_b, statement 1']);
  });

  test('an index on a table of an earlier migration', () => {
    const found = findUnsafe([
      { tag: '0005_a', statements: [readStatement('CREATE TABLE "a" ("b" text);')] },
      { tag: '0006_b', statements: [readStatement('CREATE INDEX "c" ON "a" ("b");')] },
    ]);
    expect(found).toEqual([
      { where: '0006_b, statement 1', problem: expect.stringContaining('concurrently') },
    ]);
  });
});
