import { useState } from 'preact/hooks';
import { Button } from './button.tsx';
import { CopyIcon } from './icons.tsx';

const TOLD_MS = 2_000;

/** Copies a text, and tells so. */
export function CopyText({ text, disabled }: { text: string; disabled?: boolean }) {
  const [told, setTold] = useState<string>();
  const copy = async () => {
    // Where the page comes without TLS, browsers have no clipboard for it.
    const isDone = await navigator.clipboard?.writeText(text).then(
      () => true,
      () => false,
    );
    setTold(isDone ? 'Copied' : 'The browser refuses: select it');
    setTimeout(() => setTold(undefined), TOLD_MS);
  };
  return (
    <Button onClick={copy} disabled={disabled}>
      <CopyIcon />
      <span aria-live="polite">{told ?? 'Copy'}</span>
    </Button>
  );
}
