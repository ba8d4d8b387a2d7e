import type { ComponentChildren, TargetedInputEvent, TargetedSubmitEvent } from 'preact';
import { isUnanswered } from '../service/failures.ts';
import { Button } from './button.tsx';
import { Problem } from './problem.tsx';

interface DialogFormProps {
  /** What is done, on the button that does it. */
  action: string;
  /** What becomes of that. */
  sending: { error: unknown; isPending: boolean };
  /** What each sending makes another one of. */
  makes?: string;
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
  makes,
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
      {sending.error ? (
        <Problem error={sending.error}>
          {makes !== undefined && isUnanswered(sending.error) && (
            <p>
              The {makes} may be made all the same. Close this, and look whether it is in the list,
              before you make another one.
            </p>
          )}
        </Problem>
      ) : null}
      <div class="dialog-end">
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" look="primary" disabled={sending.isPending}>
          {action}
        </Button>
      </div>
    </form>
  );
};
