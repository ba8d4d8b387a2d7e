import type { SessionRecord } from '../service/hosts.ts';
import { useCloseSession } from '../service/hosts.ts';
import { Button } from '../ui/button.tsx';
import { PlusIcon } from '../ui/icons.tsx';

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

/** The logins on hosts that are open, of which one is used. */
export function SessionBar({ sessions, session, onChoose, onLogIn, onAddHost }: SessionBarProps) {
  const close = useCloseSession();
  return (
    <div class="row">
      {session && (
        <>
          <select
            class="input session"
            aria-label="Host"
            value={session.sid}
            onChange={event => onChoose(event.currentTarget.value)}
          >
            {sessions.map(({ sid, username, hostname, state }) => (
              <option key={sid} value={sid}>
                {username}@{hostname}
                {STATES[state]}
              </option>
            ))}
          </select>
          <Button
            look="quiet"
            title="Ends this login, and cancels its jobs"
            disabled={close.isPending}
            onClick={() => close.mutate(session.sid)}
          >
            Log out there
          </Button>
        </>
      )}
      {session && onLogIn && (
        <Button onClick={onLogIn}>
          <PlusIcon />
          Log in to a host
        </Button>
      )}
      {session && onAddHost && (
        <Button look="quiet" onClick={onAddHost}>
          Add a host
        </Button>
      )}
    </div>
  );
}
