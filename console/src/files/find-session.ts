/** What an address of files names. */
export interface NamedLogin {
  sid: string | null;
  host: string | null;
  /** On the host. */
  user: string | null;
}

interface Login {
  sid: string;
  hostname: string;
  /** On the host. */
  username: string;
  state: string;
}

/**
 * The login through which files are looked at: the one that is named, else an open one of that account on that host. What was
 * meant for one account is never looked at, or written to, as another one, such as root, unasked.
 */
export function findSession<T extends Login>(sessions: T[], { sid, host, user }: NamedLogin) {
  const named = sessions.find(one => one.sid === sid);
  if (named) return named;
  const open = sessions.filter(({ state }) => state === 'open');
  if (sid === null && host === null) return sessions.length === 1 ? sessions[0] : undefined;
  const there = open.filter(
    ({ hostname, username }) => hostname === host && (user === null || username === user),
  );
  return there.every(({ username }) => username === there[0]?.username) ? there[0] : undefined;
}
