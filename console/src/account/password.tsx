import { WindlassError } from '@windlass/client';
import type { TargetedSubmitEvent } from 'preact';
import { useState } from 'preact/hooks';
import { useChangePassword } from '../service/account.ts';
import type { CurrentUser } from '../service/user.ts';
import { Button } from '../ui/button.tsx';
import { Problem } from '../ui/problem.tsx';

const isRefused = (error: unknown): boolean =>
  error instanceof WindlassError && error.code === 'forbidden' && error.detail.includes('current');

/** A new password, from who knows the one until now. */
export function Password({ user }: { user: CurrentUser }) {
  const change = useChangePassword(user);
  const [isOther, setOther] = useState(false);
  const send = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const fields = new FormData(form);
    const text = (name: string) => String(fields.get(name));
    const isSame = text('password') === text('again');
    setOther(!isSame);
    if (!isSame) return;
    const given = { current: text('current'), password: text('password') };
    change.mutate(given, { onSuccess: () => form.reset() });
  };
  return (
    <>
      <h2>Password</h2>
      <form class="card card-body narrow" onSubmit={send} aria-label="Password">
        {/* Password managers know by it whose password this is. */}
        <input type="hidden" name="username" autocomplete="username" value={user.username} />
        <label class="field">
          <span>Password until now</span>
          <input
            class="input"
            name="current"
            type="password"
            required
            autocomplete="current-password"
          />
        </label>
        <div class="two">
          <label class="field">
            <span>New password</span>
            <input
              class="input"
              name="password"
              type="password"
              required
              minLength={8}
              maxLength={1_024}
              autocomplete="new-password"
            />
            <small>At least 8 characters.</small>
          </label>
          <label class="field">
            <span>New password again</span>
            <input
              class="input"
              name="again"
              type="password"
              required
              autocomplete="new-password"
            />
          </label>
        </div>
        <p class="muted">
          Your logins in other browsers end. Tokens, webhooks and logins on hosts stay.
        </p>
        {isOther && (
          <div class="notice" data-look="error" role="alert">
            <strong>The new passwords differ: type the same twice.</strong>
          </div>
        )}
        {change.error && !isOther && (
          <Problem
            error={
              isRefused(change.error) ? 'The password until now is another one.' : change.error
            }
          />
        )}
        <div class="row">
          <Button type="submit" look="primary" disabled={change.isPending}>
            {change.isPending ? 'Changing it …' : 'Change the password'}
          </Button>
          <span role="status">{change.isSuccess && !isOther && 'It is changed.'}</span>
        </div>
      </form>
    </>
  );
}
