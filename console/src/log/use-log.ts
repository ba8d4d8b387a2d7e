import { useEffect, useMemo, useReducer, useState } from 'preact/hooks';
import { askWhoIsThere, queries } from '../service/client.ts';
import { mayPass } from '../service/failures.ts';
import { refreshJob } from '../service/jobs.ts';
import { useUser } from '../service/user.ts';
import { feedLog } from './feed-log.ts';
import { OutputLog } from './output-log.ts';
import { whileVisible } from './while-visible.ts';

/** How often counts beside the log are told anew. */
const COUNT_MS = 200;
/** So long a page follows a job that nobody sees. */
const HIDDEN_MS = 5_000;
/** After an answer that may be another one next time. */
const AGAIN_MS = 5_000;

export interface FollowedLog {
  log: OutputLog;
  /** Why it cannot be followed, or not just now. */
  error: unknown;
  /** Calls the listener whenever lines came. */
  subscribe: (listener: () => void) => () => void;
}

/** The log of a job, which is followed as long as it is shown. */
export function useLog(job: string): FollowedLog {
  const [error, setError] = useState<unknown>();
  const [missed, setMissed] = useState<unknown>();
  const [, recount] = useReducer((n: number) => n + 1, 0);
  const { log, listeners, subscribe } = useMemo(() => openLog(job), [job]);
  // It goes on from where it is after a login that was made again.
  const isOut = useUser().data === null;
  useEffect(() => {
    if (isOut) return;
    setError(undefined);
    const watching = new AbortController();
    const { signal } = watching;
    let counting: ReturnType<typeof setTimeout> | undefined;
    let hasLines = log.lineCount > 0;
    const count = () => {
      clearTimeout(counting);
      counting = undefined;
      recount(undefined);
    };
    let again: ReturnType<typeof setTimeout> | undefined;
    const onChange = () => {
      for (const listener of listeners) listener();
      const isFirst = !hasLines && log.lineCount > 0;
      hasLines ||= isFirst;
      // Where there are lines it is not said that there are none, and at the end there is no more to wait for.
      if (isFirst || log.isWhole) count();
      else counting ??= setTimeout(count, COUNT_MS);
    };
    const onEvent = () => {
      setError(undefined);
      void refreshJob(job);
    };
    const feed = (turn: AbortSignal) =>
      feedLog(job, log, { signal: turn, onChange, onEvent, onMissed: setMissed });
    const follow = () =>
      whileVisible(feed, { page: document, hiddenMs: HIDDEN_MS, signal })
        .then(() => {
          setError(undefined);
          // Its end is in the record and in lists.
          void refreshJob(job);
          void queries.invalidateQueries({ queryKey: ['jobs'] });
        })
        .catch(reason => {
          if (signal.aborted) return;
          setError(reason);
          askWhoIsThere(reason);
          if (mayPass(reason)) again = setTimeout(follow, AGAIN_MS);
        });
    void follow();
    return () => {
      watching.abort(new Error('The log is not shown any more.'));
      clearTimeout(counting);
      clearTimeout(again);
    };
  }, [job, log, listeners, isOut]);
  return { log, error: error ?? missed, subscribe };
}

function openLog(_job: string) {
  const listeners = new Set<() => void>();
  const subscribe = (listener: () => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  return { log: new OutputLog(), listeners, subscribe: subscribe as FollowedLog['subscribe'] };
}
