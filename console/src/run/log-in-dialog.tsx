import { useEffect, useRef, useState } from 'preact/hooks';
import { keepAccount, readAccount } from '../service/command-history.ts';
import {
  type Challenge,
  type SessionRecord,
  useHost,
  useHosts,
  useOpenSession,
} from '../service/hosts.ts';
import { itemsOf } from '../service/pages.ts';
import type { CurrentUser } from '../service/user.ts';
import { Choice } from '../ui/choice.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { DialogForm } from '../ui/dialog-form.tsx';
import { ChallengeForm } from './challenge-form.tsx';
import { CredentialFields, type Method, readCredentials } from './credential-fields.tsx';
import { JumpFields, readJumpCredentials } from './jump-fields.tsx';

interface LogInDialogProps {
  /** The only host; else it is chosen. */
  to?: string;
  /** A session whose connection was lost, and that asks for another login. */
  again: SessionRecord | undefined;
  user: CurrentUser;
  onClose: () => void;
  onOpened: (session: { sid: string; banner: string | undefined }) => void;
}

/** What the host asks, and where the answers go. */
interface Asked {
  challenge: Challenge;
  answer: (answers: string[]) => void;
}

/** A login on a host. What is typed or chosen goes into one request; only the host and the user name are kept here. */
export function LogInDialog({ to, again, user, onClose, onOpened }: LogInDialogProps) {
  const open = useOpenSession();
  const [method, setMethod] = useState<Method>('password');
  const [chosen, choose] = useState<string>();
  const list = useHosts();
  const hosts = itemsOf(list.data) ?? [];
  const [last] = useState(readAccount);
  // It may have been removed since.
  const lastHost = useHost(last?.hostname);
  const suggested = lastHost.data ? last?.hostname : hosts[0]?.name;
  // What is typed is for the host that is seen then: no later answer puts another one in its place.
  const first = useRef<string>();
  if (!lastHost.isLoading) first.current ??= suggested;
  const hostname = again?.hostname ?? to ?? chosen ?? (first.current || undefined);
  const one = useHost(hostname).data;
  const [jumpMethod, setJumpMethod] = useState<Method>();
  const host = one ?? hosts.find(({ name }) => name === hostname);
  const jump = host?.jump;
  const [asked, setAsked] = useState<Asked>();
  const watching = useRef(new AbortController());
  // Closing the dialog ends a login that waits for answers.
  useEffect(() => () => watching.current.abort(new Error('The login was given up.')), []);

  const answer = (challenge: Challenge) =>
    new Promise<string[]>((resolve, reject) => {
      watching.current.signal.addEventListener('abort', () =>
        reject(watching.current.signal.reason),
      );
      const take = (answers: string[]) => {
        setAsked(undefined);
        resolve(answers);
      };
      setAsked({ challenge, answer: take });
    });

  const send = async (fields: FormData) => {
    const given = await readCredentials(fields, method);
    const username = again?.username ?? String(fields.get('username'));
    open.mutate(
      {
        again: again?.sid,
        hostname: hostname ?? '',
        username,
        ...given,
        ...(fields.has('startup') && { startup: 'each' as const }),
        ...(jump && jumpMethod && { jump: await readJumpCredentials(fields, jumpMethod) }),
        answer,
        signal: watching.current.signal,
      },
      {
        onSuccess: opened => {
          keepAccount({ hostname: hostname ?? '', username });
          onOpened(opened);
        },
        onError: () => setAsked(undefined),
      },
    );
  };

  const title = again
    ? `Log in again as ${again.username} on ${again.hostname}`
    : 'Log in to a host';
  return (
    <Dialog title={asked ? 'The host asks' : title} onClose={onClose}>
      {asked && (
        <ChallengeForm
          key={asked.challenge.challenge}
          challenge={asked.challenge}
          onAnswer={asked.answer}
          onCancel={onClose}
        />
      )}
      {/* What was typed is still there where an answer is refused. */}
      <div hidden={asked !== undefined}>
        <DialogForm
          action={open.isPending ? 'Logging in …' : 'Log in'}
          sending={open}
          onSend={send}
          onInput={() => {
            first.current ??= '';
          }}
          onClose={onClose}
        >
          {!again && (
            <div class="two">
              <Choice
                label="Host"
                required
                value={hostname ?? ''}
                options={(to === undefined ? hosts.map(({ name }) => name) : [to]).map(
                  name => [name, name] as const,
                )}
                more={to === undefined ? list : undefined}
                onChange={choose}
              />
              <UserNameField username={last?.username ?? user.username} />
            </div>
          )}
          <CredentialFields method={method} onMethod={setMethod} />
          {jump && (
            <JumpFields
              jump={jump}
              username={again?.username ?? user.username}
              method={jumpMethod}
              onMethod={setJumpMethod}
            />
          )}
          {!again && host?.agent && (
            <label class="check">
              <input type="checkbox" name="startup" />
              <span>
                Each command reads the start-up files
                <small>
                  As over plain ssh: their aliases and functions are there, and it begins later.
                </small>
              </span>
            </label>
          )}
        </DialogForm>
      </div>
    </Dialog>
  );
}

const UserNameField = ({ username }: { username: string }) => (
  <label class="field">
    <span>User name there</span>
    <input
      class="input"
      name="username"
      required
      autocomplete="off"
      autocapitalize="none"
      spellcheck={false}
      defaultValue={username}
      autofocus
    />
  </label>
);
