import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import postgres from 'postgres';
import { afterAll, afterEach, beforeEach } from 'vitest';
import { awaitExit, endWithThisProcess } from '../../../servers/processes.ts';
import { migrateDatabase } from '../../../shared/database/migrate.ts';
import { makeTempDir } from '../files/temp-dir.ts';
import { useStarted } from '../stacks/use-stack.ts';
import { waitFor } from '../wait-for.ts';
import { startTestPostgres } from './postgres-server.ts';

const PROGRAM = fileURLToPath(new URL('../../../dist/shared/database/migrate.js', import.meta.url));

/** A new database for each test, with migrations that the test writes, and tools to watch and to cut them. */
export function useMigrations() {
  const directory = makeTempDir('migrations');
  const server = useStarted(() => startTestPostgres());
  let url = '';
  let folder = '';
  let count = 0;
  const said: string[] = [];
  const sessions: postgres.Sql[] = [];
  const children: ChildProcess[] = [];

  beforeEach(async () => {
    const name = `migrations_${count++}`;
    url = await server.createDatabase(name);
    folder = join(directory.path, name);
    mkdirSync(join(folder, 'meta'), { recursive: true });
    said.length = 0;
  });
  afterEach(async () => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
    await Promise.all(sessions.splice(0).map(sql => sql.end({ timeout: 2 })));
  });
  afterAll(() => directory.remove());

  /** A session of its own. */
  function connect(): postgres.Sql {
    const sql = postgres(url, { max: 1, onnotice: () => {}, fetch_types: false });
    sessions.push(sql);
    return sql;
  }

  /** Writes migrations as drizzle-kit does: `0000_a`, `0001_b`, … */
  function write(...migrations: string[][]): void {
    const entries = migrations.map((statements, idx) => {
      const tag = `000${idx}_${String.fromCharCode(97 + idx)}`;
      writeFileSync(join(folder, `${tag}.sql`), statements.join('\n--> statement-breakpoint\n'));
      return { idx, version: '7', when: 1_000 + idx, tag, breakpoints: true };
    });
    writeFileSync(join(folder, 'meta/_journal.json'), JSON.stringify({ entries }));
  }

  const migrate = (signal?: AbortSignal) =>
    migrateDatabase(url, { folder, signal, say: line => said.push(line) });

  /** Migrates in a process that can be killed. */
  function startMigrating(): ChildProcess {
    const program = `
      import { migrateDatabase } from ${JSON.stringify(PROGRAM)};
      await migrateDatabase(${JSON.stringify(url)}, {
        folder: ${JSON.stringify(folder)}, say: line => console.log(line) });`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    endWithThisProcess(child);
    children.push(child);
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', text => said.push(...text.trimEnd().split('\n')));
    return child;
  }

  async function kill(child: ChildProcess): Promise<void> {
    child.kill('SIGKILL');
    await awaitExit(child);
  }

  const untilSaid = (pattern: RegExp, timeoutMs = 20_000) =>
    waitFor(() => said.find(line => pattern.test(line)), { what: `a line ${pattern}`, timeoutMs });

  /** The backend of the migration, once it waits for a lock. */
  const untilItWaits = (watcher: postgres.Sql) =>
    waitFor(
      async () => {
        const [row] = await watcher<{ pid: number }[]>`select pid from pg_stat_activity
          where application_name = 'windlass migrate' and datname = current_database()
            and wait_event_type = 'Lock'`;
        return row?.pid;
      },
      { what: 'the migration to wait for a lock', timeoutMs: 20_000 },
    );

  const untilGone = (watcher: postgres.Sql, pid: number) =>
    waitFor(
      async () => (await watcher`select 1 from pg_stat_activity where pid = ${pid}`).length === 0,
      { what: 'the connection of the migration to end' },
    );

  return {
    server,
    connect,
    write,
    migrate,
    startMigrating,
    kill,
    untilSaid,
    untilItWaits,
    untilGone,
    url: () => url,
    folder: () => folder,
  };
}

export async function pidOf(sql: postgres.Sql): Promise<number> {
  const [row] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
  return row?.pid ?? 0;
}

/** Reads the columns of the table `t`. */
export async function readColumns(sql: postgres.Sql): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`select attname as name from pg_attribute
    where attrelid = 't'::regclass and attnum > 0 and not attisdropped order by attnum`;
  return rows.map(({ name }) => name);
}

/** Whether the index `t_n` is; undefined where there is none. */
export async function isIndexValid(sql: postgres.Sql): Promise<boolean | undefined> {
  const [row] = await sql<{ valid: boolean }[]>`select indisvalid as valid from pg_index
    where indexrelid = to_regclass('t_n')`;
  return row?.valid;
}
