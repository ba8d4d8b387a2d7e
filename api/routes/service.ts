import type { Router } from 'express';
import type { ApiContext } from '../context.ts';
import { ABOUT, drawAbout } from '../operate/about.ts';
import { ReadinessCheck } from '../operate/readiness.ts';
import { resource } from '../resource.ts';

/** What the service is, and how it is: open to everyone, once, without a prefix. */
export function routeService(router: Router, api: ApiContext): void {
  const readiness = new ReadinessCheck(api);

  resource(router, '/', {
    get: (req, res) => {
      res.vary('Accept');
      if (req.accepts(['json', 'html']) !== 'html') return void res.json(ABOUT);
      res
        .type('html')
        .set('Content-Security-Policy', "default-src 'none'; style-src 'unsafe-inline'")
        .send(drawAbout());
    },
  });

  /** This process answers; nothing else is asked. */
  resource(router, '/healthz', { get: (_req, res) => void res.json({ ok: true }) });

  /** Ready to serve: what requests need answers, and the work that they started is being done. */
  resource(router, '/readyz', {
    get: async (_req, res) => {
      const answer = await readiness.run();
      res.set('Cache-Control', 'no-store');
      if (!answer.ready) res.set('Retry-After', '2').status(503);
      res.json(answer);
    },
  });
}
