import { useEffect, useState } from 'preact/hooks';
import { whenUserLeaves } from './user.ts';

/** What was typed and is not stored yet, by what it is of. */
const drafts = new Map<string, unknown>();

function keepDraft(of: string, draft: unknown): void {
  if (draft === undefined) drafts.delete(of);
  else drafts.set(of, draft);
  if (drafts.size > 0) addEventListener('beforeunload', askBefore);
  else removeEventListener('beforeunload', askBefore);
}

/** It is stored, or not wanted any more. */
export const dropDraft = (of: string): void => keepDraft(of, undefined);

/** The browser asks before they are lost with the page. */
const askBefore = (event: BeforeUnloadEvent) => event.preventDefault();

whenUserLeaves(() => {
  for (const of of [...drafts.keys()]) dropDraft(of);
});

/** What is typed in place of what is stored: it is there again after a look at other pages. */
export function useDraft<T>(
  of: string,
  stored: T,
  isSame: (one: T, other: T) => boolean,
): { draft: T; change: (draft: T) => void; drop: () => void } {
  const [kept, setTyped] = useState(() => drafts.get(of) as T | undefined);
  // It was stored, though its answer was lost, or somebody else has stored the same.
  const typed = kept !== undefined && isSame(kept, stored) ? undefined : kept;
  const take = (next: T | undefined) => {
    keepDraft(of, next);
    setTyped(next);
  };
  useEffect(() => {
    if (kept !== undefined && typed === undefined) take(undefined);
  });
  return {
    draft: typed ?? stored,
    change: next => take(isSame(next, stored) ? undefined : next),
    drop: () => take(undefined),
  };
}
