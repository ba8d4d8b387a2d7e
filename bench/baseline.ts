/**
 * The baseline of `npm run bench:http`: bare Express 5 with one hand-written query for each response.
 * Arguments: the URL of the database, and the owner of the requested records.
 */
import { randomBytes } from 'node:crypto';
import express from 'express';
import postgres from 'postgres';

const [databaseUrl = '', owner = ''] = process.argv.slice(2);
const sql = postgres(databaseUrl, { max: 20, fetch_types: false });
const app = express();
app.disable('x-powered-by').disable('etag');

app.get('/status/:sid/:vsid', async (req, res) => {
  const { sid, vsid } = req.params;
  const [row] = await sql`
    select jobs.state, jobs.message, jobs.progress, jobs.error, jobs.version, sessions.agent, sessions.accessed
    from jobs join sessions on sessions.sid = jobs.session
    where jobs.id = ${vsid} and sessions.sid = ${sid} and sessions.owner = ${owner} and sessions.ended is null`;
  if (!row) return void res.status(404).end();
  res.json({ ok: true, ready: false, message: row.message, progress: row.progress });
});

/** What a project is like, without a query. */
const project = {
  id: '0'.repeat(26),
  name: 'Project',
  description: '',
  role: 'administrator',
  created: new Date(),
  updated: new Date(),
  acl: { administrators: [{ user: owner }], writers: [], readers: [] },
};
app.get('/project', (_req, res) => void res.json(project));

app.post('/launch', express.json(), async (req, res) => {
  const { sid, command } = req.body as { sid: string; command: string };
  const [session] = await sql`select sid from sessions where sid = ${sid} and ended is null`;
  if (!session) return void res.status(404).end();
  const id = randomBytes(13).toString('hex');
  const [row] = await sql`
    insert into jobs (id, kind, queue, owner, session, payload)
    values (${id}, 'command', 'nobody', ${owner}, ${sid}, ${sql.json({ command })}) returning *`;
  res.status(202).location(`/jobs/${id}`).json(row);
});

const server = app.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.send?.(typeof address === 'object' ? address?.port : undefined);
});
process.on('disconnect', () => process.exit(0));
