import type { Host } from '../service/hosts.ts';
import type { CurrentUser } from '../service/user.ts';
import { Button } from '../ui/button.tsx';

interface FirstStepsProps {
  hosts: Host[];
  user: CurrentUser;
  onAddHost: () => void;
  onLogIn: () => void;
}

/** What leads to a first command, and which step is the next. */
export function FirstSteps({ hosts, user, onAddHost, onLogIn }: FirstStepsProps) {
  const hasHosts = hosts.length > 0;
  return (
    <section class="card steps" aria-label="First steps">
      <ol>
        <li data-step={hasHosts ? 'done' : 'next'}>
          <h2>Add a host</h2>
          <p class="muted">{describeHosts(hosts, user)}</p>
          {user.administrator && (
            <Button look={hasHosts ? undefined : 'primary'} onClick={onAddHost}>
              {hasHosts ? 'Add another host' : 'Add a host'}
            </Button>
          )}
        </li>
        <li data-step={hasHosts ? 'next' : 'later'}>
          <h2>Log in there</h2>
          <p class="muted">
            With your account on that machine: a password, a key file, or one-time codes.
          </p>
          <Button look={hasHosts ? 'primary' : undefined} disabled={!hasHosts} onClick={onLogIn}>
            Log in to a host
          </Button>
        </li>
        <li data-step="later">
          <h2>Run a command</h2>
          <p class="muted">
            It goes on when you close this page, and runs exactly once. What it prints is kept.
          </p>
        </li>
      </ol>
    </section>
  );
}

function describeHosts(hosts: Host[], { administrator }: CurrentUser): string {
  const [first, second, ...others] = hosts.map(({ name }) => name);
  if (!first)
    return administrator
      ? 'A machine that an SSH server runs on. Its key is remembered, and checked from then on.'
      : 'Ask an administrator of this service to add a machine on which you have an account.';
  if (!second) return `${first} is ready.`;
  return others.length === 0
    ? `${first} and ${second} are ready.`
    : `${first}, ${second} and ${others.length} more are ready.`;
}
