import type { TargetedSubmitEvent } from 'preact';
import { useState } from 'preact/hooks';
import { type UserDetails, useChangeUser, useRemoveUser } from '../service/operations.ts';
import { itemsOf } from '../service/pages.ts';
import { useUsers } from '../service/user.ts';
import { Button } from '../ui/button.tsx';
import { Choice } from '../ui/choice.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { Problem } from '../ui/problem.tsx';
import { TokensOf } from './tokens-of.tsx';

interface UserDialogProps {
  user: UserDetails;
  /** Administrators cannot take from themselves what they need to be here. */
  isSelf: boolean;
  onClose: () => void;
}

const DISABLE_WORDS = 'Logins and tokens end at once; nothing is removed.';

/** What an administrator does with a login: another password, another role, an end. */
export function UserDialog({ user, isSelf, onClose }: UserDialogProps) {
  const { username, administrator, disabled } = user;
  const change = useChangeUser(username);
  const reset = useChangeUser(username);
  const [asked, ask] = useState<'role' | 'disable'>();
  const roleAction = administrator ? 'Make a user' : 'Make an administrator';
  const roleWords = administrator
    ? 'Can operate this service no more.'
    : 'May then add hosts, change all users, and see what everybody runs.';
  const setPassword = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const password = String(new FormData(form).get('password'));
    reset.mutate({ password }, { onSuccess: () => form.reset() });
  };
  return (
    <Dialog title={username} onClose={onClose}>
      {!isSelf && (
        <section class="form" aria-label="Role">
          <div class="row">
            <Button size="small" disabled={change.isPending} onClick={() => ask('role')}>
              {roleAction} …
            </Button>
            <Button
              size="small"
              disabled={change.isPending}
              onClick={() => (disabled ? change.mutate({ disabled: false }) : ask('disable'))}
            >
              {disabled ? 'Enable' : 'Disable …'}
            </Button>
            <span class="muted" role="status">
              {disabled ? 'Cannot log in.' : administrator ? 'Is an administrator.' : 'Is a user.'}
            </span>
          </div>
          {asked && (
            <div class="row">
              <span>{asked === 'role' ? roleWords : DISABLE_WORDS}</span>
              <Button
                size="small"
                look="danger"
                onClick={() => {
                  ask(undefined);
                  change.mutate(
                    asked === 'role' ? { administrator: !administrator } : { disabled: true },
                  );
                }}
              >
                {asked === 'role' ? roleAction : 'Disable'}
              </Button>
              <Button size="small" onClick={() => ask(undefined)}>
                Keep
              </Button>
            </div>
          )}
          {change.error && <Problem error={change.error} />}
        </section>
      )}
      {!isSelf && (
        <form class="form" onSubmit={setPassword} aria-label="Password">
          <label class="field">
            <span>New password</span>
            <input
              class="input"
              name="password"
              type="password"
              required
              minLength={8}
              autocomplete="new-password"
            />
            <small>It ends the sessions, tokens and logins that the user has.</small>
          </label>
          <div class="row">
            <Button type="submit" size="small" disabled={reset.isPending}>
              Set the password
            </Button>
            <span role="status">{reset.isSuccess && 'It is set.'}</span>
          </div>
          {reset.error && <Problem error={reset.error} />}
        </form>
      )}
      <TokensOf username={username} />
      {!isSelf && <Remove user={user} onRemoved={onClose} />}
      <div class="dialog-end">
        <Button onClick={onClose}>Close</Button>
      </div>
    </Dialog>
  );
}

function Remove({ user, onRemoved }: { user: UserDetails; onRemoved: () => void }) {
  const { username, soleProjects } = user;
  const remove = useRemoveUser(username);
  const [isRemoving, setRemoving] = useState(false);
  const [fate, setFate] = useState<Fate>({ heir: '', isDeletion: false });
  const isDecided = soleProjects === 0 || fate.isDeletion || fate.heir !== '';
  const send = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const heir = fate.isDeletion ? '' : fate.heir;
    remove.mutate(heir || undefined, { onSuccess: onRemoved });
  };
  return (
    <form class="form danger-zone" aria-label="Remove" onSubmit={send}>
      {isRemoving ? (
        <>
          {soleProjects > 0 && (
            <FateFields username={username} count={soleProjects} fate={fate} onChange={setFate} />
          )}
          <div class="row">
            <span>Really?</span>
            <Button
              type="submit"
              look="danger"
              size="small"
              disabled={remove.isPending || !isDecided}
            >
              Remove {username}
            </Button>
            <Button size="small" onClick={() => setRemoving(false)}>
              Keep
            </Button>
          </div>
        </>
      ) : (
        <Button look="danger" size="small" onClick={() => setRemoving(true)}>
          Remove this user …
        </Button>
      )}
      {remove.error && <Problem error={remove.error} />}
    </form>
  );
}

/** Neither applies until it is chosen: an heir whose name is typed in part must not end in a deletion. */
interface Fate {
  heir: string;
  isDeletion: boolean;
}

interface FateFieldsProps {
  username: string;
  /** The number of projects that nobody else may change. */
  count: number;
  fate: Fate;
  onChange: (fate: Fate) => void;
}

/** What becomes of the projects that nobody else may change. */
function FateFields({ username, count, fate, onChange }: FateFieldsProps) {
  const { heir, isDeletion } = fate;
  const list = useUsers();
  const others = itemsOf(list.data)?.filter(user => user.username !== username && !user.disabled);
  return (
    <>
      <p>
        Nobody else may change {count === 1 ? '1 project' : `${count} projects`} of {username}.
      </p>
      {!isDeletion && (
        <Choice
          label="Give them to"
          required
          value={heir}
          options={others?.map(user => [user.username, user.username] as const) ?? []}
          more={list}
          onChange={chosen => onChange({ heir: chosen, isDeletion })}
        />
      )}
      <label class="check">
        <input
          type="checkbox"
          checked={isDeletion}
          onChange={event => onChange({ heir, isDeletion: event.currentTarget.checked })}
        />
        <span>Give them to nobody: they are deleted with all data where they have no readers</span>
      </label>
    </>
  );
}
