import { useState } from 'preact/hooks';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/confirm-dialog.tsx';
import { formatBytes } from '../ui/format-bytes.ts';

interface GiveUpProps {
  names: string;
  /**
   * Bytes that the service has of the upload, as far as they are known; undefined where it has not begun, so that nothing is
   * lost.
   */
  arrived: number | undefined;
  isPending?: boolean;
  error?: unknown;
  onAsk?: () => void;
  onGiveUp: () => void;
}

/** Gives an upload up, once that is meant. */
export function GiveUp({ names, arrived, isPending, error, onAsk, onGiveUp }: GiveUpProps) {
  const [isAsked, ask] = useState(false);
  const begin = () => {
    if (arrived === undefined) return onGiveUp();
    onAsk?.();
    ask(true);
  };
  return (
    <>
      <Button size="small" aria-label={`Give up ${names}`} onClick={begin}>
        Give up
      </Button>
      {isAsked && arrived !== undefined && (
        <ConfirmDialog
          title="Give up this upload?"
          action="Give it up"
          isPending={isPending ?? false}
          error={error}
          onConfirm={onGiveUp}
          onClose={() => ask(false)}
        >
          <p class="break">
            Of <strong>{names}</strong>{' '}
            {arrived > 0
              ? `${formatBytes(arrived)} have arrived, and are removed`
              : 'what has arrived is removed'}
            . Another page or program that is sending it now ends.
          </p>
        </ConfirmDialog>
      )}
    </>
  );
}
