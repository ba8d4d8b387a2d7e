import { useMutation } from '@tanstack/preact-query';
import type { TargetedSubmitEvent } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { isSignedOut } from '../service/client.ts';
import { apiPath } from '../service/place.ts';
import { logIn, useLogins } from '../service/user.ts';
import { Button } from '../ui/button.tsx';
import { Problem } from '../ui/problem.tsx';
import { useTitle } from '../ui/use-title.ts';

/** The login page. The address stays, so that the login leads to what it names. */
export function SignIn() {
  useTitle('Log in');
  return (
    <main class="sign-in">
      <SignInForm />
    </main>
  );
}

/** Above a page whose login has ended, and above the dialogs that are open in it. */
export function SignInAgain({ username }: { username: string }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const title = document.title;
    document.title = 'Log in again · Windlass';
    const element = dialog.current;
    element?.showModal();
    return () => {
      element?.close();
      document.title = title;
    };
  }, []);
  return (
    <dialog
      class="sign-in-again"
      ref={dialog}
      aria-label="Log in again"
      onCancel={event => event.preventDefault()}
      // Browsers let a second Escape close it.
      onClose={() => dialog.current?.isConnected && dialog.current.showModal()}
    >
      <main class="sign-in">
        <SignInForm again={username} />
      </main>
    </dialog>
  );
}

function SignInForm({ again }: { again?: string }) {
  const { data: logins } = useLogins();
  const login = useMutation({ mutationFn: logIn });
  const send = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    login.mutate({
      username: String(fields.get('username')),
      password: String(fields.get('password')),
    });
  };
  const target = location.pathname + location.search;
  return (
    <form onSubmit={send}>
      <div>
        <div class="brand">
          <img src="./icon.svg" alt="" />
          <span>Windlass</span>
        </div>
        <h1 class="visually-hidden">Log in to Windlass</h1>
        <p class="sign-in-lead">Commands, videos and data on your hosts.</p>
      </div>
      {again !== undefined && (
        <p class="notice" role="status">
          <strong>Your login has ended.</strong>
          Log in as {again} again, and go on where you were: what you typed is still there.
        </p>
      )}
      {isSignedOut(login.error) && (
        <p class="notice" data-look="error" role="alert">
          <strong>The user name or the password is wrong.</strong>
        </p>
      )}
      {login.error && !isSignedOut(login.error) && <Problem error={login.error} />}
      <label class="field">
        <span>User name</span>
        <input
          class="input"
          name="username"
          autocomplete="username"
          required
          autofocus={again === undefined}
          defaultValue={again}
        />
      </label>
      <label class="field">
        <span>Password</span>
        <input
          class="input"
          name="password"
          type="password"
          autocomplete="current-password"
          required
          autofocus={again !== undefined}
        />
      </label>
      <Button type="submit" look="primary" disabled={login.isPending}>
        {login.isPending ? 'Logging in …' : 'Log in'}
      </Button>
      {logins?.includes('oidc') && (
        <>
          <p class="or">or</p>
          <a
            class="button"
            href={apiPath(`login/oidc?target=${encodeURIComponent(target)}`)}
            // In another tab, which tells this one: its page would be lost.
            target={again === undefined ? undefined : '_blank'}
            rel={again === undefined ? undefined : 'noopener'}
          >
            Log in with your organization
          </a>
        </>
      )}
    </form>
  );
}
