import { useEffect, useState } from 'preact/hooks';
import { Folder } from '../files/folder.tsx';
import { NoSession } from '../files/no-session.tsx';
import { SessionBar } from '../run/session-bar.tsx';
import { useSessions } from '../service/hosts.ts';
import type { CurrentUser } from '../service/user.ts';
import { Problem } from '../ui/problem.tsx';
import { useAddress } from '../ui/use-address.ts';
import { useTitle } from '../ui/use-title.ts';
import { Wait } from '../ui/wait.tsx';
import '../styles/files.css';

/** The files of a host. An address names the login, and the host for those who have another one there. */
export function FilesPage({ user }: { user: CurrentUser }) {
  const { data, error } = useSessions();
  const sessions = data ?? [];
  const [search, change] = useAddress();
  const path = search.get('path');
  useTitle(path === null ? 'Files' : `${path}, files`);
  const sid = search.get('session');
  const host = search.get('host') ?? sessions.find(one => one.sid === sid)?.hostname;
  const isElsewhere = sid !== null || host !== undefined;
  const address = `${sid} ${search.get('host')}`;
  const [shown, setShown] = useState<{ address: string; sid: string; host: string }>();
  const named = sessions.find(one => one.sid === sid);
  const session =
    named ??
    // What was seen as one account is never read or written as another one unasked.
    (shown?.address === address
      ? sessions.find(one => one.sid === shown.sid)
      : (sessions.find(({ hostname, state }) => hostname === host && state === 'open') ??
        (isElsewhere
          ? undefined
          : (sessions.find(({ state }) => state === 'open') ?? sessions[0]))));
  useEffect(() => {
    if (session) setShown({ address, sid: session.sid, host: session.hostname });
  }, [address, session?.sid]);
  return (
    <>
      <div class="page-head">
        <h1>Files</h1>
        <SessionBar
          sessions={sessions}
          session={session}
          onChoose={chosen => {
            const hostname = sessions.find(one => one.sid === chosen)?.hostname;
            const rest = { path: '', file: '', find: '', make: '' };
            change({ session: chosen, host: hostname, ...rest }, { step: true });
          }}
        />
      </div>
      {error && <Problem error={error} />}
      {!data && !error && <Wait>Asking for your sessions …</Wait>}
      {session?.state === 'open' && <Folder key={session.sid} session={session} />}
      {data && session?.state !== 'open' && (
        <NoSession
          user={user}
          host={session?.hostname ?? host ?? shown?.host}
          again={session?.state === 'reconnect' ? session : undefined}
          onOpened={opened => change({ session: opened })}
        />
      )}
    </>
  );
}
