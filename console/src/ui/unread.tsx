import { Button } from './button.tsx';

/** Names that are told of those that could not be read. */
const TOLD = 5;

/** What of a drop the browser could not read, and so was not taken. */
export function Unread({ paths, onClose }: { paths: string[]; onClose: () => void }) {
  if (paths.length === 0) return null;
  const more = paths.length - TOLD;
  return (
    <div class="notice" data-look="error" role="alert">
      <strong>
        {paths.length === 1 ? 'One of them' : `${paths.length.toLocaleString()} of them`} could not
        be read here, and was left out.
      </strong>
      <p class="mono">
        {paths.slice(0, TOLD).join(', ')}
        {more > 0 && ` and ${more.toLocaleString()} more`}
      </p>
      <p>
        It may not be yours to read, be gone, or be a whole drive. See to it, and drop it again.{' '}
        <Button size="small" look="quiet" onClick={onClose}>
          Close
        </Button>
      </p>
    </div>
  );
}
