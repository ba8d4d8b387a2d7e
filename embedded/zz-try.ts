import { startPostgres } from '/work/main/embedded/postgres.ts';
import { chooseDataDir } from '/work/main/embedded/data-dir.ts';
import { createLog } from '/work/main/shared/log.ts';
import postgres from 'postgres';
const { dataDir, notice } = chooseDataDir({ given: process.argv[2], checkout: '/work/main' });
console.log(dataDir, notice);
const t = Date.now();
const pg = await startPostgres({ dataDir, log: createLog({ level: 'info', name: 't' }) });
console.log('started', Date.now() - t, pg.pid, pg.url.replace(/:[^:@]*@/, ':…@'));
const sql = postgres(pg.url);
console.log(await sql`select version(), current_user, current_setting('io_method')`);
await sql.end();
if (process.argv[3]) { console.log('waiting', process.pid); await new Promise(r => process.once('SIGINT', r)); }
const u = Date.now();
await pg.stop();
console.log('stopped', Date.now() - u);
