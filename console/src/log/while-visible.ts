/** The members of a document that are needed here. */
export interface Visibility {
  readonly visibilityState: string;
  addEventListener(
    type: 'visibilitychange',
    listener: () => void,
    options: { signal: AbortSignal },
  ): void;
}

interface Options {
  page: Visibility;
  /** A page that is hidden for fewer milliseconds goes on. */
  hiddenMs: number;
  /** Ends the work for good, with the signal's reason as error. */
  signal: AbortSignal;
}

/**
 * Does the work while the page is visible, and again whenever it becomes visible: browsers open six connections to a
 * host for all of its pages, so a hidden page must hold none.
 */
export async function whileVisible(
  work: (signal: AbortSignal) => Promise<void>,
  options: Options,
): Promise<void> {
  const { signal } = options;
  for (;;) {
    await becomesVisible(options);
    const turn = new AbortController();
    const watching = new AbortController();
    abortWhenHidden(turn, options, AbortSignal.any([signal, watching.signal]));
    try {
      return await work(AbortSignal.any([signal, turn.signal]));
    } catch (error) {
      if (signal.aborted || !turn.signal.aborted) throw error;
    } finally {
      watching.abort();
    }
  }
}

function becomesVisible({ page, signal }: Options): Promise<void> {
  return new Promise((resolve, reject) => {
    const done = new AbortController();
    const look = () => {
      if (page.visibilityState === 'hidden') return;
      done.abort();
      resolve();
    };
    signal.addEventListener('abort', () => reject(signal.reason), { signal: done.signal });
    page.addEventListener('visibilitychange', look, {
      signal: AbortSignal.any([signal, done.signal]),
    });
    if (signal.aborted) reject(signal.reason);
    look();
  });
}

function abortWhenHidden(
  turn: AbortController,
  { page, hiddenMs }: Options,
  watching: AbortSignal,
): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const look = () => {
    clearTimeout(timer);
    if (page.visibilityState !== 'hidden') return;
    timer = setTimeout(() => turn.abort(new Error('The page is hidden.')), hiddenMs);
  };
  page.addEventListener('visibilitychange', look, { signal: watching });
  watching.addEventListener('abort', () => clearTimeout(timer), { once: true });
}
