import { useState } from 'preact/hooks';
import { Link } from 'wouter-preact';
import { type SessionRecord, useCloseSession, useSessions } from '../service/hosts.ts';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/confirm-dialog.tsx';
import { ListSection } from '../ui/list-section.tsx';
import { type Column, Table } from '../ui/table.tsx';
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
  <Table
    label="Logins on hosts"
    rows={sessions}
    keyOf={({ sid }) => sid}
    columns={COLUMNS}
    actions={session => (
      <Button
        size="small"
        aria-label={`Log out of ${loginOf(session)}, opened ${new Date(session.created).toLocaleString()}`}
        onClick={() => onEnd(session)}
      >
        Log out
      </Button>
    )}
  />
);

const loginOf = ({ username, hostname }: SessionRecord) => `${username}@${hostname}`;

const COLUMNS: Column<SessionRecord>[] = [
  {
    name: 'Login',
    look: 'ellipsis',
    title: loginOf,
    cell: session =>
      session.state === 'open' ? (
        <Link href={`/run?session=${session.sid}`}>{loginOf(session)}</Link>
      ) : (
        loginOf(session)
      ),
  },
  {
    name: 'State',
    cell: ({ state }) => (
      <span class="badge" data-state={STATES[state][0]}>
        {STATES[state][1]}
      </span>
    ),
  },
  { name: 'Opened', cell: ({ created }) => <Time at={created} /> },
  { name: 'Used', cell: ({ accessed }) => <Ago at={accessed} /> },
  { name: 'Ends unless it is used', cell: ({ expires }) => <Time at={expires} /> },
];

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
