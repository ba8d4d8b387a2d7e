import { useState } from 'preact/hooks';
import { Link } from 'wouter-preact';
import { type SessionRecord, useCloseSession, useSessions } from '../service/hosts.ts';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/confirm-dialog.tsx';
import { ListSection } from '../ui/list-section.tsx';
import { TableBox } from '../ui/table-box.tsx';
import { Ago, Time } from '../ui/time.tsx';

/** By its tone and its word. */
const STATES = {
  open: ['succeeded', 'Open'],
  challenge: ['queued', 'Waits for a code'],
  reconnect: ['failed', 'Needs a new login'],
} as const;

/** The user's sessions on hosts, also those that programs opened. */
export function HostLogins() {
  const { data, error } = useSessions();
  const [ended, setEnded] = useState<SessionRecord>();
  return (
    <>
      <ListSection
        title="Logins on hosts"
        what="your logins"
        items={data}
        error={error}
        empty={{
          title: 'No login on a host',
          words: (
            <>
              Commands run, and files are read, by a login on a host. You open one under{' '}
              <Link href="/run">Run</Link>; those of your programs stand here as well.
            </>
          ),
        }}
      >
        {sessions => <LoginTable sessions={sessions} onEnd={setEnded} />}
      </ListSection>
      {ended && <EndLogin session={ended} onClose={() => setEnded(undefined)} />}
    </>
  );
}

interface LoginTableProps {
  sessions: SessionRecord[];
  onEnd: (session: SessionRecord) => void;
}

const LoginTable = ({ sessions, onEnd }: LoginTableProps) => (
  <TableBox label="Logins on hosts">
    <table class="plain">
      <thead>
        <tr>
          <th scope="col">Login</th>
          <th scope="col">State</th>
          <th scope="col">Opened</th>
          <th scope="col">Used</th>
          <th scope="col">Ends unless it is used</th>
          <th scope="col">
            <span class="visually-hidden">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {sessions.map(session => {
          const { sid, username, hostname, state, created, accessed, expires } = session;
          const [tone, word] = STATES[state];
          const login = `${username}@${hostname}`;
          return (
            <tr key={sid}>
              <th scope="row" class="ellipsis" title={login}>
                {state === 'open' ? <Link href={`/run?session=${sid}`}>{login}</Link> : login}
              </th>
              <td>
                <span class="badge" data-state={tone}>
                  {word}
                </span>
              </td>
              <td>
                <Time at={created} />
              </td>
              <td>
                <Ago at={accessed} />
              </td>
              <td>
                <Time at={expires} />
              </td>
              <td class="actions">
                <Button
                  size="small"
                  aria-label={`Log out of ${login}`}
                  onClick={() => onEnd(session)}
                >
                  Log out
                </Button>
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  </TableBox>
);

function EndLogin({ session, onClose }: { session: SessionRecord; onClose: () => void }) {
  const close = useCloseSession();
  return (
    <ConfirmDialog
      title={`Log out of ${session.hostname}?`}
      action="Log out there"
      isPending={close.isPending}
      error={close.error}
      onConfirm={() => close.mutate(session.sid, { onSuccess: onClose })}
      onClose={onClose}
    >
      <p>
        Commands that run there as {session.username} by this login are cancelled. What they have
        printed stays with their jobs.
      </p>
    </ConfirmDialog>
  );
}
