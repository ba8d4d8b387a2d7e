import type { Drop } from '../service/dropped.ts';
import { Button } from './button.tsx';
import { formatCount } from './numbers.ts';

/** The most files that are named. */
const NAMED = 5;

/** What is wrong with what was dropped, if anything is. */
export function DropProblem({ files, unreadable, onClose }: Drop & { onClose: () => void }) {
  if (unreadable.length === 0 && files.length > 0) return null;
  const more = unreadable.length - NAMED;
  return (
    <div class="notice" data-look="error" role="alert">
      {unreadable.length === 0 ? (
        <strong>There is no file in what you dropped.</strong>
      ) : (
        <>
          <strong>
            The browser cannot read {unreadable.slice(0, NAMED).join(', ')}
            {more > 0 && ` and ${formatCount(more)} more`}.
          </strong>
          <p>
            It is gone, or you may not read it. Look at its permissions and drop it again.
            {files.length > 0 && ' Everything else is there.'}
          </p>
        </>
      )}
      <Button size="small" look="quiet" onClick={onClose}>
        Close
      </Button>
    </div>
  );
}
