import { useMutation } from '@tanstack/preact-query';
import { useState } from 'preact/hooks';
import { type CacheLocation, isKept } from '../service/videos.ts';
import { ConfirmDialog } from '../ui/confirm-dialog.tsx';

/** Asks before a video takes the place of one that is kept under the same key, which is lost then. */
export function useReplaceQuestion() {
  const [asked, setAsked] = useState<{ location: CacheLocation; goOn: () => void }>();
  const look = useMutation({ mutationFn: isKept });
  const ask = (location: CacheLocation | undefined, goOn: () => void) => {
    if (!location) return goOn();
    look.mutate(location, {
      onSuccess: isThere => (isThere ? setAsked({ location, goOn }) : goOn()),
    });
  };
  const close = () => setAsked(undefined);
  const question = asked && (
    <ConfirmDialog
      title={`Replace ${asked.location.key}?`}
      action="Replace it"
      isPending={false}
      error={null}
      onConfirm={() => {
        close();
        asked.goOn();
      }}
      onClose={close}
    >
      <p>
        The project keeps a video under this key already. It is removed for good once the new one is
        there. Another key keeps both.
      </p>
    </ConfirmDialog>
  );
  return { ask, question, isPending: look.isPending, error: look.error };
}
