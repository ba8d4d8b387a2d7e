import type { ComponentChildren } from 'preact';
import { Button } from './button.tsx';
import { Dialog } from './dialog.tsx';
import { Problem } from './problem.tsx';

interface ConfirmDialogProps {
  title: string;
  /** What is done, on the button that does it. */
  action: string;
  /** What is lost. */
  children: ComponentChildren;
  isPending: boolean;
  error: unknown;
  onConfirm: () => void;
  onClose: () => void;
}

/** Asks before what cannot be taken back. */
export const ConfirmDialog = ({
  title,
  action,
  children,
  isPending,
  error,
  onConfirm,
  onClose,
}: ConfirmDialogProps) => (
  <Dialog title={title} onClose={onClose}>
    {children}
    {error !== null && error !== undefined && <Problem error={error} />}
    <div class="dialog-end">
      <Button autofocus onClick={onClose}>
        Keep
      </Button>
      <Button look="danger" disabled={isPending} onClick={onConfirm}>
        {action}
      </Button>
    </div>
  </Dialog>
);
