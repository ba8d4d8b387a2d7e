import type { Handler } from '../context.ts';
import { auditRefusal } from '../ssh/audit-login.ts';
import { openSession } from '../ssh/open-session.ts';
import { logInForSession } from '../ssh/session-logins.ts';

/** Logs in to a session's host, up to the questions to its user, and makes the session usable. */
const connect: Handler<'connect'> = async context => {
  const { worker, job, sid, signal } = context;
  const login = { sid, job: job.id };
  return auditRefusal(context, async () =>
    openSession(context, await logInForSession(worker.sessions, login, signal)),
  );
};

export default connect;
