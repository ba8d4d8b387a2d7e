import { useState } from 'preact/hooks';
import { Link } from 'wouter-preact';
import { LogInDialog } from '../run/log-in-dialog.tsx';
import { type SessionRecord, useHost, useHosts } from '../service/hosts.ts';
import { itemsOf } from '../service/pages.ts';
import type { CurrentUser } from '../service/user.ts';
import { Button } from '../ui/button.tsx';
import { Empty } from '../ui/empty.tsx';
import { Problem } from '../ui/problem.tsx';

interface NoSessionProps {
  user: CurrentUser;
  /** The host that the address names. */
  host: string | undefined;
  /** There are others to choose from, above. */
  isChoice: boolean;
  /** Its login is lost, and is to be made again. */
  again?: SessionRecord;
  onOpened: (sid: string) => void;
}

/** Shown without a session on the host: how to get one, which leads back here. */
export function NoSession({ user, host, isChoice, again, onOpened }: NoSessionProps) {
  const all = useHosts();
  const named = useHost(host);
  const [isOpen, setOpen] = useState(false);
  const { data, error } = host === undefined ? all : named;
  if (error) return <Problem error={error} />;
  if (data === undefined) return null;
  const isKnown = host === undefined ? (itemsOf(all.data) ?? []).length > 0 : named.data !== null;
  const none = isChoice ? 'Choose a login' : 'Not logged in to a host';
  return (
    <div class="card">
      <Empty title={host === undefined ? none : `Not logged in to ${host}`}>
        <p>{wordsOf({ host, isChoice, again, isKnown })}</p>
        {isKnown ? (
          <Button look="primary" onClick={() => setOpen(true)}>
            {host === undefined ? 'Log in to a host' : `Log in to ${host}`}
          </Button>
        ) : (
          <Link href="/run">To the hosts</Link>
        )}
      </Empty>
      {isOpen && (
        <LogInDialog
          to={host}
          again={again}
          user={user}
          onClose={() => setOpen(false)}
          onOpened={({ sid }) => {
            setOpen(false);
            onOpened(sid);
          }}
        />
      )}
    </div>
  );
}

function wordsOf(
  found: Pick<NoSessionProps, 'host' | 'isChoice' | 'again'> & { isKnown: boolean },
): string {
  if (found.again) return 'The connection was lost, and the host asks for a new login.';
  if (!found.isKnown)
    return found.host === undefined
      ? 'The files are on the machines on which you run commands. An administrator adds the first one.'
      : 'There is no such host, or it is not for you.';
  if (found.host === undefined && found.isChoice)
    return 'You look at files through the login that you choose above, or through a new one.';
  if (found.host === undefined)
    return 'The files are on the machines on which you run commands. Log in to one, and look around here.';
  return 'The login has ended, or is of another account. With one of your own you see what is there: choose it above, or log in.';
}
