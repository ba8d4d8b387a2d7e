import { useEffect } from 'preact/hooks';
import { findSession } from '../files/find-session.ts';
import { Folder } from '../files/folder.tsx';
import { NoSession } from '../files/no-session.tsx';
import { SessionBar } from '../run/session-bar.tsx';
import { keepLogin, readLogin } from '../service/command-history.ts';
import { type SessionRecord, useSessions } from '../service/hosts.ts';
import type { CurrentUser } from '../service/user.ts';
import { Problem } from '../ui/problem.tsx';
import { useAddress } from '../ui/use-address.ts';
import { useTitle } from '../ui/use-title.ts';
import { Wait } from '../ui/wait.tsx';
import '../styles/files.css';

/** The files of a host. An address names the login, and its host and account for when it is not there. */
export function FilesPage({ user: self }: { user: CurrentUser }) {
  const { data, error } = useSessions();
  const sessions = data ?? [];
  const [search, change] = useAddress();
  const path = search.get('path');
  useTitle(path === null ? 'Files' : `${path}, files`);
  const user = search.get('user');
  const named = search.get('session');
  const isBare = named === null && !search.has('host');
  const isThere = (kept: string | undefined) => sessions.some(({ sid }) => sid === kept);
  const kept = [readLogin('files'), readLogin('run')].find(isThere);
  const sid = isBare ? (kept ?? null) : named;
  const host = search.get('host') ?? sessions.find(one => one.sid === sid)?.hostname ?? null;
  const session = findSession(sessions, { sid, host, user });
  useEffect(() => {
    if (!session) return;
    keepLogin('files', session.sid);
    const place = placeOf(session);
    const isNamed = Object.entries(place).every(([name, value]) => search.get(name) === value);
    if (!isNamed) change(place);
  }, [session, search, change]);
  return (
    <>
      <div class="page-head">
        <h1>Files</h1>
        <SessionBar
          sessions={sessions}
          session={session}
          onChoose={chosen => {
            const next = sessions.find(one => one.sid === chosen);
            if (!next) return;
            // Who has another account than the address names goes on where it leads to.
            const isThere = session === undefined && next.hostname === host;
            const rest = isThere ? {} : { path: '', file: '', find: '', make: '' };
            change({ ...placeOf(next), ...rest }, { step: true });
          }}
        />
      </div>
      {error && <Problem error={error} />}
      {!data && !error && <Wait>Asking for your sessions …</Wait>}
      {session?.state === 'open' && <Folder key={session.sid} session={session} />}
      {data && session?.state !== 'open' && (
        <NoSession
          user={self}
          host={session?.hostname ?? host ?? undefined}
          isChoice={sessions.length > 0}
          again={session?.state === 'reconnect' ? session : undefined}
          onOpened={opened => change({ session: opened })}
        />
      )}
    </>
  );
}

const placeOf = ({ sid, hostname, username }: SessionRecord) => ({
  session: sid,
  host: hostname,
  user: username,
});
