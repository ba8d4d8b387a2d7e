import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { Link, useLocation } from 'wouter-preact';
import { apiPath } from '../service/place.ts';
import { type CurrentUser, findLoss, logOut } from '../service/user.ts';
import { AnnouncedPage } from './announced-page.tsx';
import { AnnouncedWork } from './announced-work.tsx';
import { Button } from './button.tsx';
import { ConfirmDialog } from './confirm-dialog.tsx';
import {
  BookIcon,
  BoxIcon,
  FolderIcon,
  GaugeIcon,
  LeaveIcon,
  ListIcon,
  PersonIcon,
  TerminalIcon,
} from './icons.tsx';
import { PageBoundary } from './page-boundary.tsx';
import { Problem } from './problem.tsx';
import { ThemeButton } from './theme.tsx';
import { useArrival } from './use-arrival.ts';
import { useKeptFocus } from './use-kept-focus.ts';

const PAGES = [
  { path: '/run', name: 'Run', Icon: TerminalIcon },
  { path: '/jobs', name: 'Jobs', Icon: ListIcon },
  { path: '/files', name: 'Files', Icon: FolderIcon },
  { path: '/projects', name: 'Projects', Icon: BoxIcon },
  { path: '/operate', name: 'Operate', Icon: GaugeIcon, forAdministrators: true },
];

/** What stands around every page of a user who is logged in. */
export function Shell({ user, children }: { user: CurrentUser; children: ComponentChildren }) {
  const [path] = useLocation();
  const main = useRef<HTMLElement>(null);
  const [failure, setFailure] = useState<unknown>();
  useArrival(path, main);
  useKeptFocus(main);
  return (
    <div class="shell">
      {/* No link: a fragment would be one of the address in `<base>`. */}
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        To the content
      </button>
      <header class="sidebar">
        <Link class="brand" href="/run" aria-label="Windlass">
          <img src="./icon.svg" alt="" />
          <span>Windlass</span>
        </Link>
        <nav class="nav" aria-label="Pages">
          {PAGES.filter(page => user.administrator || !page.forAdministrators).map(
            ({ path: to, name, Icon }) => (
              <Link
                key={to}
                href={to}
                aria-current={path === to || path.startsWith(`${to}/`) ? 'page' : undefined}
              >
                <Icon />
                <span>{name}</span>
              </Link>
            ),
          )}
          <a href={apiPath('docs')}>
            <BookIcon />
            <span>API</span>
          </a>
        </nav>
        <div class="sidebar-end">
          <Link
            class="who"
            href="/account"
            title="Your account"
            aria-current={path.startsWith('/account') ? 'page' : undefined}
          >
            <PersonIcon />
            <span>
              <span class="visually-hidden">Your account: </span>
              <strong class="ellipsis">{user.username}</strong>
              <small>{user.administrator ? 'Administrator' : 'User'}</small>
            </span>
          </Link>
          <ThemeButton />
          <LogOutButton onFailed={setFailure} />
        </div>
      </header>
      <AnnouncedPage path={path} />
      <AnnouncedWork />
      <main class="main" ref={main} tabIndex={-1}>
        {failure !== undefined && <Problem error={failure} />}
        <PageBoundary>{children}</PageBoundary>
      </main>
    </div>
  );
}

function LogOutButton({ onFailed }: { onFailed: (error: unknown) => void }) {
  const [loss, setLoss] = useState<'here' | 'elsewhere'>();
  const leave = () => {
    setLoss(undefined);
    onFailed(undefined);
    logOut().catch(onFailed);
  };
  const ask = async () => {
    const found = await findLoss();
    if (found) setLoss(found);
    else leave();
  };
  return (
    <>
      <Button look="quiet" size="icon" aria-label="Log out" title="Log out" onClick={ask}>
        <LeaveIcon />
      </Button>
      {loss && (
        <ConfirmDialog
          title="Log out?"
          action="Log out"
          isPending={false}
          error={undefined}
          onConfirm={leave}
          onClose={() => setLoss(undefined)}
        >
          <p>
            {loss === 'elsewhere' && 'In another tab of this browser: '}
            What is typed and not stored, or still being sent, is lost.
          </p>
        </ConfirmDialog>
      )}
    </>
  );
}
