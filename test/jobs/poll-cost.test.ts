import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Client } from '../../servers/api-client.ts';
import { newId } from '../../shared/ids.ts';
import { isFull } from '../faults/settings.ts';
import { openStackDatabase } from '../harness/databases/database.ts';
import { connectClient } from '../harness/hosts/remote.ts';
import { type Stack, startStack } from '../harness/stacks/stack.ts';
import { waitFor } from '../harness/wait-for.ts';

/** Jobs that are stored, all of one user and one session: what a query that reads more than one row would stumble on. */
const FEW = 1_000;
const MANY = isFull ? 1_000_000 : 50_000;
/** A B-tree grows by a level, which is a page more to read, at some hundred times as many rows. */
const LEVELS = 2;

interface Statement {
  text: string;
  /** The parameters as SQL literals, in order. */
  parameters: string[];
}

describe('what a poll costs', () => {
  let stack: Stack;
  let client: Client;
  let database: postgres.Sql;
  const [sid, id] = [newId(), newId()];

  beforeAll(async () => {
    // On the embedded form, whose server's log can be read: what is asked of the database is the same everywhere.
    stack = await startStack();
    client = connectClient(stack);
    database = openStackDatabase(stack);
    await database`insert into sessions (sid, owner, hostname, username, agent, opened)
      values (${sid}, ${stack.username}, 'host', 'user', true, now())`;
    await database`insert into jobs (id, kind, queue, owner, session, payload, state, not_before)
      values (${id}, 'video', 'video', ${stack.username}, ${sid}, '{}', 'running', 'infinity')`;
  });
  afterAll(async () => {
    await database?.end();
    await stack?.stop();
  });

  const store = async (from: number, to: number) => {
    await database`insert into jobs (id, kind, queue, owner, session, payload, state, finished)
      select '0' || lpad(n::text, 25, '0'), 'video', 'video', ${stack.username}, ${sid}, '{}', 'succeeded', now()
      from generate_series(${from}::int, ${to}::int) n`;
    await database`vacuum (analyze) jobs`;
  };

  /** Has the server log every statement while this runs; those of them that name the job, as they were sent. */
  async function listen(run: () => Promise<void>): Promise<Statement[]> {
    const path = join(stack.dataDir, 'postgres.log');
    const set = async (least: string) => {
      await database.unsafe(`alter system set log_min_duration_statement = ${least}`);
      await database`select pg_reload_conf()`;
      await waitFor(
        async () => (await database`show log_min_duration_statement`)[0]?.[SETTING] === least,
        { what: 'the setting to be taken' },
      );
    };
    const { size } = await stat(path);
    await database.unsafe("alter system set log_line_prefix = 'log> '");
    await set('0');
    // Only when the process that will be asked logs, too, is anything heard of it.
    await waitFor(
      async () => {
        await run();
        return readStatements((await readFile(path)).subarray(size).toString()).length > 0;
      },
      { what: 'the log of the server' },
    );
    const mark = (await stat(path)).size;
    await run();
    const end = `end of ${newId()}`;
    await database.unsafe(`select '${end}'`);
    const log = await waitFor(
      async () => {
        const text = (await readFile(path)).subarray(mark).toString();
        return text.includes(end) ? text : undefined;
      },
      { what: 'the end of what was asked' },
    );
    await set('-1');
    return readStatements(log);
  }

  /** What was executed with the job's id among its parameters: a line of the log each, and one with the parameters. */
  const readStatements = (log: string): Statement[] => {
    const lines = log.split(/^log> /m);
    return lines
      .map((line, i) => ({
        text: /^LOG: .* ms {2}execute [^:]*: ([\s\S]*)/.exec(line)?.[1] ?? '',
        parameters: lines[i + 1]?.match(/(?<=\$\d+ = )(?:'(?:[^']|'')*'|NULL)/g) ?? [],
      }))
      .filter(({ text, parameters }) => text && parameters.some(value => value.includes(id)));
  };

  /** Pages that the statement reads, as the planner would have it for these parameters and for any. */
  async function countPages({ text, parameters }: Statement): Promise<number> {
    const pages: number[] = [];
    for (const mode of ['force_custom_plan', 'force_generic_plan']) {
      await database.unsafe(`set plan_cache_mode = ${mode}`);
      await database.unsafe(`prepare poll as ${text}`);
      const call = `execute poll(${parameters.join(', ')})`;
      // Once before: what the server itself looks up for the first time is not the query's.
      for (const measure of [false, true]) {
        const [row] = await database.unsafe(`explain (analyze, buffers, format json) ${call}`);
        const [told] = (row?.['QUERY PLAN'] ?? []) as { Plan: Record<string, number> }[];
        const { 'Shared Hit Blocks': hit = 0, 'Shared Read Blocks': read = 0 } = told?.Plan ?? {};
        if (measure) pages.push(hit + read);
      }
      await database`deallocate poll`;
    }
    return Math.max(...pages);
  }

  const polls = [
    ['the status of a video', `/api/remotes/${sid}/videos/${id}/status`, {}],
    [
      'the status of a video that is held',
      `/api/remotes/${sid}/videos/${id}/status`,
      { Prefer: 'wait=0' },
    ],
    ['a job', `/api/jobs/${id}`, {}],
  ] as const;

  test(`is one query by primary key, and as few pages at ${MANY} jobs as at ${FEW}`, {
    timeout: isFull ? 900_000 : 180_000,
  }, async () => {
    const measure = async () => {
      const found: Record<string, { asked: string[]; pages: number }> = {};
      for (const [what, path, headers] of polls) {
        const statements = await listen(async () => {
          const answer = await client.fetch(path, { headers });
          expect([what, answer.status]).toEqual([what, 200]);
          await answer.text();
        });
        const [first] = statements;
        if (!first) throw new Error(`${what}: nothing was asked`);
        found[what] = { asked: statements.map(({ text }) => text), pages: await countPages(first) };
      }
      return found;
    };
    await store(1, FEW);
    const few = await measure();
    await store(FEW + 1, MANY);
    const many = await measure();
    const pages = polls.map(([what]) => [what, few[what]?.pages, many[what]?.pages]);
    console.log(`pages of a poll at ${FEW} and ${MANY} jobs: ${JSON.stringify(pages)}`);
    for (const [what] of polls) {
      for (const at of [few, many]) expect(at[what]?.asked, what).toHaveLength(1);
      const [before = 0, after = 0] = [few[what]?.pages, many[what]?.pages];
      expect(before).toBeGreaterThan(0);
      expect(before).toBeLessThanOrEqual(20);
      expect(after - before).toBeLessThanOrEqual(LEVELS);
    }
  });
});

const SETTING = 'log_min_duration_statement';
