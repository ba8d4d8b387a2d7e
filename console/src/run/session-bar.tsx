import { useState } from 'preact/hooks';
import type { SessionRecord } from '../service/hosts.ts';
import { useCloseSession } from '../service/hosts.ts';
import { Button } from '../ui/button.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { PlusIcon } from '../ui/icons.tsx';
import { Problem } from '../ui/problem.tsx';

interface SessionBarProps {
  sessions: SessionRecord[];
  session: SessionRecord | undefined;
  onChoose: (sid: string) => void;
  onLogIn?: () => void;
  onAddHost?: () => void;
}

const STATES: Record<SessionRecord['state'], string> = {
  open: '',
  challenge: ', waits for a code',
  reconnect: ', needs a new login',
};

type Account = Pick<SessionRecord, 'username' | 'hostname'>;

const isTwice = (sessions: Account[], { username, hostname }: Account): boolean =>
  sessions.filter(one => one.username === username && one.hostname === hostname).length > 1;

const timeOf = (time: string): string =>
  new Date(time).toLocaleString(undefined, { dateStyle: 'short', timeStyle: 'medium' });

/** The logins on hosts that are open, of which one is used. */
export function SessionBar({ sessions, session, onChoose, onLogIn, onAddHost }: SessionBarProps) {
  const [isLeaving, setLeaving] = useState(false);
  const hasSessions = sessions.length > 0;
  return (
    <div class="row">
      {hasSessions && (
        <>
          <select
            class="input session"
            aria-label="Host"
            value={session?.sid ?? ''}
            onChange={event => onChoose(event.currentTarget.value)}
          >
            {!session && (
              <option value="" disabled>
                Choose a login …
              </option>
            )}
            {sessions.map(({ sid, username, hostname, state, created }) => (
              <option key={sid} value={sid}>
                {username}@{hostname}
                {isTwice(sessions, { username, hostname }) && `, since ${timeOf(created)}`}
                {STATES[state]}
              </option>
            ))}
          </select>
          {session && (
            <Button
              look="quiet"
              title="Ends this login, and cancels its jobs"
              onClick={() => setLeaving(true)}
            >
              Log out there
            </Button>
          )}
        </>
      )}
      {hasSessions && onLogIn && (
        <Button onClick={onLogIn}>
          <PlusIcon />
          Log in to a host
        </Button>
      )}
      {hasSessions && onAddHost && (
        <Button look="quiet" onClick={onAddHost}>
          Add a host
        </Button>
      )}
      {session && isLeaving && <LeaveDialog session={session} onClose={() => setLeaving(false)} />}
    </div>
  );
}

/** Asks first: what runs there is lost. */
function LeaveDialog({ session, onClose }: { session: SessionRecord; onClose: () => void }) {
  const close = useCloseSession();
  return (
    <Dialog title={`Log out of ${session.hostname}?`} onClose={onClose}>
      <p>
        Commands that run there as {session.username} by this login are cancelled. What they have
        printed stays with their jobs.
      </p>
      {close.error && <Problem error={close.error} />}
      <div class="dialog-end">
        <Button onClick={onClose}>Stay</Button>
        <Button
          look="danger"
          disabled={close.isPending}
          onClick={() => close.mutate(session.sid, { onSuccess: onClose })}
        >
          {close.isPending ? 'Logging out …' : 'Log out there'}
        </Button>
      </div>
    </Dialog>
  );
}
