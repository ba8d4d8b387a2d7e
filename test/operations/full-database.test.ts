import { execFileSync, spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { expect, test } from 'vitest';
import { toWindlassError } from '../../api/http/to-windlass-error.ts';
import { openDatabase } from '../../shared/database/connect.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { NEEDS_MOUNT } from '../harness/hosts/small-disk.ts';

const given = withDatabase('full');

test('a database without a free connection is told as such', async () => {
  const admin = given.database();
  await admin.sql.unsafe(`create role crowded login password 'secret' connection limit 0`);
  const url = given.url.replace(/\/\/[^@]*@/, '//crowded:secret@');
  const crowded = openDatabase(url, { max: 1 });
  try {
    const error = await crowded.sql`select 1`.catch((reason: unknown) => reason);
    expect(toWindlassError(error)).toMatchObject({
      code: 'unavailable',
      message: 'Service unavailable: the database has no connection left (max_connections).',
    });
  } finally {
    await crowded.close();
  }
});

test('a full disk of the database is told as such, and nothing is changed', async context => {
  const disk = makeTempDir('disk');
  const { sql } = given.database();
  const [server] = await sql<{ data_directory: string }[]>`show data_directory`;
  const owner = statSync(server?.data_directory ?? '');
  try {
    const option = `size=8m,uid=${owner.uid},gid=${owner.gid},mode=0700`;
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', option, 'tmpfs', disk.path], { stdio: 'ignore' });
    } catch {
      return context.skip(NEEDS_MOUNT);
    }
    await sql.unsafe(`create tablespace small location '${disk.path}'`);
    const fill = sql.unsafe(
      `create table filler tablespace small as select repeat('x', 1000) from generate_series(1, 100000)`,
    );
    const error = await fill.catch((reason: unknown) => reason);
    expect(toWindlassError(error)).toMatchObject({
      code: 'insufficient_storage',
      message: 'Insufficient storage: The disk of the database is full. Nothing was changed.',
      hint: 'Ask an administrator to make room on it, then try again.',
    });
    await sql.unsafe('drop tablespace small');
  } finally {
    // Fails where nothing was mounted.
    spawnSync('umount', [disk.path]);
    disk.remove();
  }
});
