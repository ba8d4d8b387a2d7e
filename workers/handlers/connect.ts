import type { Handler } from '../context.ts';
import { auditRefusal } from '../ssh/audit-login.ts';
import { openSession } from '../ssh/open-session.ts';

/** Logs in to a session's host, up to the questions to its user, and makes the session usable. */
const connect: Handler<'connect'> = async context => {
  const { worker, job, signal } = context;
  return auditRefusal(context, async () =>
    openSession(context, await worker.sessions.logIn(job.session ?? '', job.id, signal)),
  );
};

export default connect;
