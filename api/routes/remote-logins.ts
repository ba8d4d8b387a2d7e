import { eq } from 'drizzle-orm';
import { z } from 'zod';
import { sessions } from '../../shared/database/schema.ts';
import { conflict, WindlassError } from '../../shared/errors/errors.ts';
import { hostText } from '../../shared/jobs/payloads/host-text.ts';
import { seal } from '../../shared/secrets/secrets.ts';
import { destinationDigest, hostChanged } from '../../shared/ssh/destination.ts';
import { hostOf, readHopsTo } from '../../shared/ssh/hops.ts';
import { assertHostFor } from '../../shared/ssh/host-access.ts';
import { MAX_PROMPTS } from '../../shared/ssh/max-prompts.ts';
import type { Exchange } from '../http/exchange.ts';
import { pathParameter, resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { clientAddress } from '../identity/client-address.ts';
import { identifyAfterWait } from '../identity/identify-sender.ts';
import { awaitJob } from '../jobs/requests/await-job.ts';
import { jobName } from '../jobs/requests/job-name.ts';
import { requireWorker } from '../jobs/requests/require-worker.ts';
import { startRequestedJob } from '../jobs/requests/start-requested-job.ts';
import { operation } from '../openapi/operation.ts';
import { checkCredential, checkJumps, loginFields, readCredential } from '../remote/credential.ts';
import { LOGIN_ANSWERS, LOGIN_ERRORS, sendLogin } from '../remote/send-login.ts';
import { findSession, hasMissedChallenge, lockSession, sessionKey } from '../remote/sessions.ts';
import { ThreadedKeyParser } from '../remote/threaded-key-parser.ts';

const answers = z
  .strictObject({
    challenge: z.string().max(100),
    answers: z.array(hostText({ max: 4_096 })).max(MAX_PROMPTS),
    name: jobName,
  })
  .meta({ id: 'LoginAnswers' });
const credential = z
  .strictObject({ ...loginFields, name: jobName })
  .superRefine(checkCredential)
  .meta({ id: 'HostCredential' });

/** Logins that take more than a password or a key: what the host asks its user, and the login after a lost connection. */
export default routes('json-body', (router, api) => {
  const keys = new ThreadedKeyParser();
  const keyOf = ({ req, res }: Exchange) => sessionKey(api, res, pathParameter(req, 'sid'));
  /** Throws `host_not_allowed` where the session's owner may log in to its host no more, and `host_changed`. */
  const readHops = async (hostname: string, owner: string) => {
    const hops = await readHopsTo(api.database.db, hostname);
    if (!hops) throw hostChanged(hostname);
    assertHostFor(hostOf(hops), { username: owner });
    return hops;
  };

  resource(router, '/remotes/:sid/answers', {
    post: operation({
      id: 'answerLogin',
      topic: 'sessions',
      summary: 'Answer what the host of a session asks at its login',
      details:
        'One answer for each prompt. They are sealed for the worker, and sent to the host once.',
      body: answers,
      headers: ['Idempotency-Key'],
      answers: LOGIN_ANSWERS,
      errors: [...LOGIN_ERRORS, 'session_not_found', 'challenge_expired'],
      handle: async ({ req, res, body }) => {
        const key = keyOf({ req, res });
        const given = body();
        await requireWorker(api, 'answer');
        const { hostname } = await findSession(api.database.db, key).catch(async error => {
          throw (await hasMissedChallenge(api.database.db, key)) ? challengeExpired() : error;
        });
        await readHops(hostname, key.owner);
        // The answers go to the connected host over that connection only: no destination is needed (decision 35).
        const sealed = await seal(
          api.config.SEAL_PUBLIC_KEY,
          { ...key, hostname },
          { destination: '', secret: given.answers },
        );
        const start = () =>
          startRequestedJob(api, { req, res }, async tx => {
            const { sid, challengeExpires } = await lockSession(tx, key, 'update');
            if (!challengeExpires || challengeExpires < new Date()) throw challengeExpired();
            await tx.update(sessions).set({ answers: sealed }).where(eq(sessions.sid, sid));
            const payload = { challenge: given.challenge, address: clientAddress(req) };
            return { kind: 'answer', payload, session: sid, name: given.name };
          });
        const ended = await awaitJob(api, res, start);
        if (ended) sendLogin(res, ended);
      },
    }),
  });

  resource(router, '/remotes/:sid/login', {
    post: operation({
      id: 'repeatLogin',
      topic: 'sessions',
      summary: 'Log in again for a session whose connection is lost',
      details:
        'For a session whose host asks its user for more than a password or a key: its state is `reconnect`.',
      body: credential,
      headers: ['Idempotency-Key'],
      answers: LOGIN_ANSWERS,
      errors: [...LOGIN_ERRORS, 'session_not_found', 'conflict'],
      handle: async ({ req, res, body }) => {
        const key = keyOf({ req, res });
        const { owner } = key;
        const given = body();
        const secret = await readCredential(keys, { owner, given });
        await identifyAfterWait(api, { req, res });
        await requireWorker(api, 'connect');
        const { hostname } = await findSession(api.database.db, key);
        const hops = await readHops(hostname, owner);
        checkJumps(given, hops);
        const destination = destinationDigest(hops);
        const sealed = await seal(
          api.config.SEAL_PUBLIC_KEY,
          { ...key, hostname },
          { destination, secret },
        );
        const start = () =>
          startRequestedJob(api, { req, res }, async tx => {
            const { sid, opened, interactive } = await lockSession(tx, key, 'update');
            if (!opened || !interactive)
              throw conflict(
                opened ? 'the session logs in by itself.' : 'its first login is under way.',
                opened ? 'Use it as it is.' : 'Answer its challenge, or open another session.',
              );
            await tx.update(sessions).set({ sealed }).where(eq(sessions.sid, sid));
            const payload = { address: clientAddress(req) };
            return { kind: 'connect', payload, session: sid, name: given.name };
          });
        const ended = await awaitJob(api, res, start);
        if (ended) sendLogin(res, ended);
      },
    }),
  });
});

const challengeExpired = () =>
  new WindlassError('challenge_expired', { hint: 'Begin the login again.' });
