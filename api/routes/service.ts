import { sql } from 'drizzle-orm';
import type { Router } from 'express';
import { workers } from '../../shared/database/schema.ts';
import { ALIVE_SECONDS } from '../../shared/jobs/lease.ts';
import type { ApiContext } from '../context.ts';
import { toWindlassError } from '../middleware/errors.ts';
import { resource } from '../resource.ts';

const ABOUT = {
  name: 'Windlass',
  is: 'Hauls long work off the request path: remote commands over SSH and videos made from frames on a remote host.',
  start: {
    'GET /api/users/-': 'who you are (HTTP Basic)',
    'GET /api/hosts': 'hosts that sessions can be opened on',
    'POST /api/remotes': 'open a session: hostname, username, password or privateKey',
    'POST /api/remotes/launch': 'run a command: sid, command',
    'POST /api/remotes/(sid)/videos': 'make a video: content-type, images',
    'GET /api/jobs': 'your jobs; /api/jobs/(id)/events streams one',
  },
  health: ['/healthz', '/readyz'],
  guide: 'README.md and docs/ of the source',
};

/** What the service is, and how it is: open to everyone, once, without a prefix. */
export function routeService(router: Router, api: ApiContext): void {
  resource(router, '/', {
    get: (req, res) => {
      if (req.accepts(['json', 'html']) !== 'html') return void res.json(ABOUT);
      const rows = Object.entries(ABOUT.start).map(
        ([route, meaning]) => `<tr><td><code>${route}</code></td><td>${meaning}</td></tr>`,
      );
      res
        .type('html')
        .set('Content-Security-Policy', "default-src 'none'; style-src 'unsafe-inline'");
      res.send(
        `<!doctype html><html lang="en"><meta charset="utf-8"><title>Windlass</title><style>body{font:16px/1.5 system-ui;max-width:46rem;margin:3rem auto;padding:0 1rem}td{padding:.2rem 1rem .2rem 0;vertical-align:top}</style><h1>Windlass</h1><p>${ABOUT.is}</p><table>${rows.join('')}</table><p>Health: <a href="/healthz">/healthz</a>, <a href="/readyz">/readyz</a>. Where to go next: ${ABOUT.guide}.</p></html>`,
      );
    },
  });

  /** This process answers; nothing else is asked. */
  resource(router, '/healthz', { get: (_req, res) => void res.json({ ok: true }) });

  /** Ready to serve: the database and the store answer, and remote work would be taken. */
  resource(router, '/readyz', {
    get: async (_req, res) => {
      const checks = {
        database: await problemOf(countWorkers(api)),
        objects: await problemOf(api.objects.check()),
      };
      const down = Object.values(checks).find(problem => problem !== null);
      if (down || api.stopping.aborted) {
        res.set('Retry-After', '2').status(503);
        return void res.json({ ready: false, checks });
      }
      res.json({ ready: true, checks, workers: await countWorkers(api) });
    },
  });
}

async function countWorkers({ database }: ApiContext): Promise<number> {
  const [row] = await database.db
    .select({ n: sql<number>`count(*)::int` })
    .from(workers)
    .where(sql`${workers.seen} > now() - interval '${sql.raw(String(ALIVE_SECONDS))} seconds'`);
  return row?.n ?? 0;
}

/** Null when it works. */
async function problemOf(check: Promise<unknown>): Promise<string | null> {
  try {
    await check;
    return null;
  } catch (error) {
    return toWindlassError(error).message;
  }
}
