import type { ComponentChildren, TargetedInputEvent, TargetedSubmitEvent } from 'preact';
import { Button } from './button.tsx';
import { Problem } from './problem.tsx';

interface DialogFormProps {
  /** What is done, on the button that does it. */
  action: string;
  /** What becomes of that. */
  sending: { error: unknown; isPending: boolean };
  onSend: (fields: FormData) => void;
  onInput?: (event: TargetedInputEvent<HTMLFormElement>) => void;
  onClose: () => void;
  autocomplete?: 'off';
  children: ComponentChildren;
}

/** The form of a dialog: its fields, what went wrong, and the buttons that end it. */
export const DialogForm = ({
  action,
  sending,
  onSend,
  onClose,
  children,
  ...form
}: DialogFormProps) => {
  const send = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    onSend(new FormData(event.currentTarget));
  };
  return (
    <form class="form" onSubmit={send} {...form}>
      {children}
      {sending.error ? <Problem error={sending.error} /> : null}
      <div class="dialog-end">
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" look="primary" disabled={sending.isPending}>
          {action}
        </Button>
      </div>
    </form>
  );
};
