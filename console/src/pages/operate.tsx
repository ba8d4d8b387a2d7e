import { Link, Redirect } from 'wouter-preact';
import { Audit } from '../operate/audit.tsx';
import { Hosts } from '../operate/hosts.tsx';
import { Overview } from '../operate/overview.tsx';
import { Settings } from '../operate/settings.tsx';
import { Storage } from '../operate/storage.tsx';
import { Users } from '../operate/users.tsx';
import type { CurrentUser } from '../service/user.ts';
import { Empty } from '../ui/empty.tsx';
import { Parts } from '../ui/parts.tsx';
import { useTitle } from '../ui/use-title.ts';
import { Missing } from './missing.tsx';
import '../styles/operate.css';

const PARTS = [
  { part: 'overview', name: 'Overview', Part: Overview },
  { part: 'hosts', name: 'Hosts', Part: Hosts },
  { part: 'users', name: 'Users', Part: Users },
  { part: 'storage', name: 'Storage', Part: Storage },
  { part: 'audit', name: 'Audit', Part: Audit },
  { part: 'settings', name: 'Settings', Part: Settings },
];

/** What server administrators look after. */
export function OperatePage({ user, part }: { user: CurrentUser; part: string }) {
  const found = PARTS.find(each => each.part === part);
  useTitle(found?.name ?? 'Operate');
  if (!user.administrator)
    return (
      <div class="card">
        <Empty title="For administrators">
          <p>
            This page is for the administrators of this service. Your own work is under{' '}
            <Link href="/jobs">Jobs</Link>.
          </p>
        </Empty>
      </div>
    );
  if (part === '') return <Redirect to="/operate/overview" replace />;
  if (!found) return <Missing />;
  const { Part } = found;
  return (
    <>
      <div class="page-head">
        <h1>Operate</h1>
        <Parts base="/operate" parts={PARTS} />
      </div>
      <Part user={user} />
    </>
  );
}
