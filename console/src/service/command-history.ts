import { forgetSent } from './once.ts';

const KEY = 'windlass.commands';
const OWNER_KEY = 'windlass.user';
const ACCOUNT_KEY = 'windlass.account';
const DRAFT_KEY = 'windlass.command';
const LOGIN_KEYS = { run: 'windlass.login', files: 'windlass.files' };
const MAX = 100;

/** The commands of this browser's user, the latest first. They are forgotten at the logout. */
export function readCommands(): string[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? '[]');
    return Array.isArray(kept) ? kept.filter(one => typeof one === 'string') : [];
  } catch {
    // A browser may refuse storage, and others may write to it.
    return [];
  }
}

export function keepCommand(command: string): void {
  const others = readCommands().filter(one => one !== command);
  try {
    localStorage.setItem(KEY, JSON.stringify([command, ...others].slice(0, MAX)));
  } catch {
    // Full or refused: there is no history then.
  }
}

/** On which host the user logged in last, and as whom. */
export interface Account {
  hostname: string;
  username: string;
}

export function readAccount(): Account | undefined {
  try {
    const kept = JSON.parse(localStorage.getItem(ACCOUNT_KEY) ?? '{}') as Partial<Account>;
    const { hostname, username } = kept;
    return hostname && username ? { hostname, username } : undefined;
  } catch {
    return undefined;
  }
}

export function keepAccount(account: Account): void {
  try {
    localStorage.setItem(ACCOUNT_KEY, JSON.stringify(account));
  } catch {
    // It is chosen again.
  }
}

/** What is being typed on this page: the command, and the other fields beside it by their names. */
export interface Draft {
  command: string;
  fields: Record<string, string>;
  /** A job has it, and nothing was typed into it since. */
  isCopy?: boolean;
}

export function readDraft(): Draft {
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(DRAFT_KEY) ?? '{}');
    const { command = '', fields = {}, isCopy = false } = kept as Partial<Draft>;
    return { command, fields, isCopy };
  } catch {
    return { command: '', fields: {} };
  }
}

/** What was typed on this page and is nowhere else, and how many fields beside its command are filled in. */
export function readUnsent(): { command: string; filled: number } | undefined {
  const { command, fields, isCopy } = readDraft();
  const filled = Object.values(fields).filter(value => value.trim() !== '').length;
  const isElsewhere = command.trim() === '' || readCommands().includes(command);
  return isCopy || (isElsewhere && filled === 0) ? undefined : { command, filled };
}

export function keepDraft(draft: Draft): void {
  try {
    sessionStorage.setItem(DRAFT_KEY, JSON.stringify(draft));
  } catch {
    // It is lost with the form.
  }
}

/** The login on a host for which commands are typed on this page, or through which files were looked at. */
export function readLogin(of: keyof typeof LOGIN_KEYS): string | undefined {
  try {
    return sessionStorage.getItem(LOGIN_KEYS[of]) ?? undefined;
  } catch {
    return undefined;
  }
}

export function keepLogin(of: keyof typeof LOGIN_KEYS, sid: string): void {
  try {
    sessionStorage.setItem(LOGIN_KEYS[of], sid);
  } catch {
    // It is chosen again, where there are several.
  }
}

/**
 * From now on the history is this user's: a login may end without a logout, and another user log in, also in another
 * tab. Returns whether it was another's.
 */
export function keepCommandsOf(user: string): boolean {
  try {
    if (sessionStorage.getItem(OWNER_KEY) !== user) forgetTyped();
    sessionStorage.setItem(OWNER_KEY, user);
    if (localStorage.getItem(OWNER_KEY) === user) return false;
    forgetCommands();
    sessionStorage.setItem(OWNER_KEY, user);
    localStorage.setItem(OWNER_KEY, user);
    return true;
  } catch {
    // Nothing is kept.
    return false;
  }
}

export function forgetCommands(): void {
  try {
    for (const key of [KEY, ACCOUNT_KEY, OWNER_KEY]) localStorage.removeItem(key);
  } catch {
    // There is none.
  }
  forgetTyped();
}

/** What this tab has of its user. */
function forgetTyped(): void {
  forgetSent();
  try {
    for (const key of [DRAFT_KEY, ...Object.values(LOGIN_KEYS), OWNER_KEY])
      sessionStorage.removeItem(key);
  } catch {
    // There is none.
  }
}
