import { z } from 'zod';
import { hosts } from '../../shared/database/schema.ts';
import { RELEASE } from '../../shared/process/release.ts';
import { isHostFor } from '../../shared/ssh/host-access.ts';
import { resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { currentUser } from '../identity/current-user.ts';
import { operation } from '../openapi/operation.ts';

/** A client that wants more pages through GET /hosts. */
const MAX_HOSTS = 10_000;

const version = z
  .object({ version: z.string(), commit: z.string().nullable() })
  .meta({ id: 'Version' });
const remoteHosts = z
  .array(z.object({ hostname: z.string(), agent: z.boolean() }).meta({ id: 'RemoteHost' }))
  .meta({ id: 'RemoteHosts' });
const markings = z
  .array(z.object({ type: z.string(), label: z.string() }).meta({ id: 'Marking' }))
  .meta({ id: 'Markings' });
const supportEmail = z
  .object({ address: z.string().nullable(), subject: z.string() })
  .meta({ id: 'SupportEmail' });

/** What clients of Slycat ask for before they begin, in the shapes that they read: docs/slycat.md. */
export default routes('json-body', (router, { config, database: { db } }) => {
  resource(router, '/configuration/version', {
    get: operation({
      id: 'getVersion',
      topic: 'operations',
      summary: 'Which release this is',
      answers: { 200: { means: 'The release; its commit is not known.', json: version } },
      handle: ({ res }) => void res.json({ version: RELEASE, commit: null }),
    }),
  });

  resource(router, '/configuration/remote-hosts', {
    get: operation({
      id: 'listRemoteHosts',
      topic: 'sessions',
      summary: 'List the hosts that you may open sessions on, as clients of Slycat read it',
      details: `By name, the first ${MAX_HOSTS}; GET /hosts has them in pages.`,
      answers: { 200: { means: 'The hosts.', json: remoteHosts } },
      handle: async ({ res }) => {
        const found = await db
          .select({ hostname: hosts.name, agent: hosts.agent })
          .from(hosts)
          .where(isHostFor(currentUser(res)))
          .orderBy(hosts.name)
          .limit(MAX_HOSTS);
        res.json(found);
      },
    }),
  });

  resource(router, '/configuration/markings', {
    get: operation({
      id: 'listMarkings',
      topic: 'models',
      summary: 'List the markings that clients offer for models',
      details: 'MARKINGS sets them. A model takes any other text too.',
      answers: { 200: { means: 'The markings.', json: markings } },
      handle: ({ res }) => void res.json(config.MARKINGS),
    }),
  });

  resource(router, '/configuration/support-email', {
    get: operation({
      id: 'getSupportEmail',
      topic: 'operations',
      summary: 'Where to ask for help',
      details: 'SUPPORT_EMAIL sets the address, which is null where there is none.',
      answers: { 200: { means: 'The address, and a subject.', json: supportEmail } },
      handle: ({ res }) =>
        void res.json({ address: config.SUPPORT_EMAIL ?? null, subject: 'Windlass' }),
    }),
  });
});
