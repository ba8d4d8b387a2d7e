import { useMutation } from '@tanstack/preact-query';
import { useState } from 'preact/hooks';
import { type CachePlace, isKept } from '../service/videos.ts';
import { ConfirmDialog } from '../ui/confirm-dialog.tsx';

/** Asks before a video takes the place of one that is kept under the same key, which is lost then. */
export function useReplaceQuestion() {
  const [asked, setAsked] = useState<{ place: CachePlace; goOn: () => void }>();
  const look = useMutation({ mutationFn: isKept });
  const ask = (place: CachePlace | undefined, goOn: () => void) => {
    if (!place) return goOn();
    look.mutate(place, {
      onSuccess: isThere => (isThere ? setAsked({ place, goOn }) : goOn()),
    });
  };
  const close = () => setAsked(undefined);
  const question = asked && (
    <ConfirmDialog
      title={`Replace ${asked.place.key}?`}
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
