import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import { Button } from '../ui/button.tsx';
import { CopyText } from '../ui/copy-text.tsx';

interface ShownOnceProps {
  /** What it is. */
  label: string;
  text: string;
  /** What it is good for. */
  children: ComponentChildren;
  onClose: () => void;
}

/** A secret that nobody can look at again: the service keeps a digest of it, or a sealed copy. */
export function ShownOnce({ label, text, children, onClose }: ShownOnceProps) {
  const field = useId();
  return (
    <div class="form">
      <p role="status">
        <strong>It is shown this once.</strong> Copy it to where it is needed before you close this.
      </p>
      <div class="field">
        <label for={field}>{label}</label>
        <div class="row">
          <input
            id={field}
            class="input mono grow"
            readOnly
            value={text}
            autofocus
            spellcheck={false}
            onFocus={event => event.currentTarget.select()}
          />
          <CopyText text={text} />
        </div>
      </div>
      <div class="muted">{children}</div>
      <div class="dialog-end">
        <Button look="primary" onClick={onClose}>
          I have it
        </Button>
      </div>
    </div>
  );
}
