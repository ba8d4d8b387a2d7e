const KEY = 'windlass.commands';
const MOST = 100;

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
    localStorage.setItem(KEY, JSON.stringify([command, ...others].slice(0, MOST)));
  } catch {
    // Full or refused: there is no history then.
  }
}

export function forgetCommands(): void {
  try {
    localStorage.removeItem(KEY);
  } catch {
    // There is none.
  }
}
