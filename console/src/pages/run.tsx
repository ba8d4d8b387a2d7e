import { useEffect, useState } from 'preact/hooks';
import { PinDialog } from '../operate/pin-dialog.tsx';
import { CommandForm } from '../run/command-form.tsx';
import { FirstSteps } from '../run/first-steps.tsx';
import { LatestJobs } from '../run/latest-jobs.tsx';
import { LogInDialog } from '../run/log-in-dialog.tsx';
import { RunOutput } from '../run/run-output.tsx';
import { SessionBar } from '../run/session-bar.tsx';
import { keepLogin, readLogin } from '../service/command-history.ts';
import { useHosts, useSessions } from '../service/hosts.ts';
import { itemsOf } from '../service/pages.ts';
import type { CurrentUser } from '../service/user.ts';
import { Button } from '../ui/button.tsx';
import { Problem } from '../ui/problem.tsx';
import { useAddress } from '../ui/use-address.ts';
import { useTitle } from '../ui/use-title.ts';
import { Wait } from '../ui/wait.tsx';

/** Choose a host, log in, type a command, see what it prints. */
export function RunPage({ user }: { user: CurrentUser }) {
  useTitle('Run');
  const [search, change] = useAddress();
  const hostList = useHosts();
  const hosts = itemsOf(hostList.data);
  const sessions = useSessions();
  const [dialog, setDialog] = useState<'host' | 'login' | 'again'>();
  const [banner, setBanner] = useState<string>();
  const error = hostList.error ?? sessions.error;
  const named = search.get('session') ?? undefined;
  const only = sessions.data?.length === 1 ? sessions.data[0]?.sid : undefined;
  const wanted = named ?? readLogin('run') ?? only;
  // It stays in the address, and for the links that name none: a login that is made elsewhere, or ends, never leads commands
  // to another host.
  useEffect(() => {
    if (named !== undefined) keepLogin('run', named);
    else if (wanted !== undefined) change({ session: wanted });
  }, [named, wanted, change]);
  if (!hosts || !sessions.data)
    return (
      <>
        <h1>Run a command</h1>
        {error ? <Problem error={error} /> : <Wait>Asking for hosts and sessions …</Wait>}
      </>
    );
  const session = sessions.data.find(({ sid }) => sid === wanted);
  const job = search.get('job') ?? undefined;
  return (
    <>
      <div class="page-head">
        <h1>Run a command</h1>
        <SessionBar
          sessions={sessions.data}
          session={session}
          onChoose={sid => change({ session: sid })}
          onAddHost={user.administrator ? () => setDialog('host') : undefined}
          onLogIn={hosts.length > 0 ? () => setDialog('login') : undefined}
        />
      </div>
      {session?.state === 'reconnect' && (
        <div class="notice" data-look="error">
          <strong>
            The connection to {session.hostname} was lost, and it asks for a new login.
          </strong>
          <p>Commands that run there go on. What waits fails after 10 minutes without one.</p>
          <p>
            <Button look="primary" onClick={() => setDialog('again')}>
              Log in again
            </Button>
          </p>
        </div>
      )}
      {!session && sessions.data.length > 0 && (
        <div class="notice" role="status">
          {wanted === undefined ? (
            <>
              <strong>Choose a login</strong>
              <p>You have several: commands run on the host that you choose above.</p>
            </>
          ) : (
            <>
              <strong>The login that was used here has ended.</strong>
              <p>
                Choose another one above, or log in again: nothing runs on another host unasked.
                What you typed is kept.
              </p>
              <p>
                <Button look="primary" onClick={() => setDialog('login')}>
                  Log in again
                </Button>
              </p>
            </>
          )}
        </div>
      )}
      {session && (
        <CommandForm
          // What is accepted late leads nobody back from the login that was chosen meanwhile.
          key={session.sid}
          session={session}
          isBatch={search.get('as') === 'batch'}
          onBatch={isBatch => change({ as: isBatch ? 'batch' : undefined })}
          onStarted={id =>
            change({ session: session.sid, job: id, line: undefined, find: undefined })
          }
        />
      )}
      {sessions.data.length === 0 && (
        <FirstSteps
          hosts={hosts}
          user={user}
          onAddHost={() => setDialog('host')}
          onLogIn={() => setDialog('login')}
        />
      )}
      {banner && <pre class="notice banner">{banner}</pre>}
      {job && <RunOutput key={job} job={job} user={user} isTold={session?.state === 'reconnect'} />}
      {!job && session && <LatestJobs key={session.hostname} session={session} />}
      {dialog === 'host' && <PinDialog onClose={() => setDialog(undefined)} />}
      {(dialog === 'login' || dialog === 'again') && (
        <LogInDialog
          again={dialog === 'again' ? session : undefined}
          user={user}
          onClose={() => setDialog(undefined)}
          onOpened={opened => {
            setDialog(undefined);
            setBanner(opened.banner);
            change({ session: opened.sid });
          }}
        />
      )}
    </>
  );
}
