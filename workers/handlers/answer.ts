import type { Handler } from '../context.ts';
import { ReleaseJob } from '../engine/release-job.ts';
import { auditRefusal } from '../ssh/audit-login.ts';
import { challengeExpired } from '../ssh/login-dialogue.ts';
import { openSession } from '../ssh/open-session.ts';
import { answerLogin, placeOfLogin, takeAnswers } from '../ssh/session-logins.ts';

/** Goes on with a login where it waits, by what the user has answered. */
const answer: Handler<'answer'> = async context => {
  const { worker, sid, payload, signal } = context;
  const place = await placeOfLogin(worker, sid, payload.challenge);
  if (place === 'elsewhere') throw new ReleaseJob('the login waits at another worker', 0.3);
  if (place === 'nowhere') throw challengeExpired();
  const answers = await takeAnswers(worker, sid);
  const given = { sid, challenge: payload.challenge, answers };
  return auditRefusal(context, async () =>
    openSession(context, await answerLogin(worker.sessions, given, signal)),
  );
};

export default answer;
