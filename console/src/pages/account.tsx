import { Redirect } from 'wouter-preact';
import { HostLogins } from '../account/host-logins.tsx';
import { Password } from '../account/password.tsx';
import { Tokens } from '../account/tokens.tsx';
import { Webhooks } from '../account/webhooks.tsx';
import type { CurrentUser } from '../service/user.ts';
import { formatBytes } from '../ui/format-bytes.ts';
import { Parts } from '../ui/parts.tsx';
import { Time } from '../ui/time.tsx';
import { useTitle } from '../ui/use-title.ts';
import '../styles/operate.css';
import '../styles/projects.css';
import '../styles/account.css';

const PARTS = [
  { part: 'tokens', name: 'Tokens', Part: Tokens },
  { part: 'webhooks', name: 'Webhooks', Part: Webhooks },
  { part: 'hosts', name: 'Logins on hosts', Part: HostLogins },
  { part: 'password', name: 'Password', Part: Password },
];

/** What is the user's own: how they and their programs log in, and what is told to their servers. */
export function AccountPage({ user, part }: { user: CurrentUser; part: string }) {
  const found = PARTS.find(each => each.part === part);
  useTitle(found?.name ?? 'Your account');
  if (!found) return <Redirect to="/account/tokens" replace />;
  const { Part } = found;
  const { bytes, limit } = user.storage;
  return (
    <>
      <div class="page-head">
        <div>
          <h1>Your account</h1>
          <p class="muted break">
            <strong>{user.username}</strong>, {user.administrator ? 'administrator' : 'user'} since{' '}
            <Time at={user.created} />, stores {formatBytes(bytes)}
            {limit > 0 && ` of ${formatBytes(limit)}`}
          </p>
        </div>
        <Parts base="/account" parts={PARTS} />
      </div>
      <Part user={user} />
    </>
  );
}
