import { useState } from 'preact/hooks';
import { Button } from '../ui/button.tsx';
import { CopyIcon } from '../ui/icons.tsx';
import type { OutputLog } from './output-log.ts';

/** More is downloaded. */
const MOST_CHARACTERS = 4 << 20;
const TOLD_MS = 2_000;

/** Copies the output as text, from the beginning. */
export function CopyButton({ log }: { log: OutputLog }) {
  const [told, setTold] = useState<string>();
  const copy = async () => {
    const { text, isAll } = gather(log);
    const done = isAll ? 'Copied' : 'Copied the first 4 MiB';
    setTold(
      await navigator.clipboard?.writeText(text).then(
        () => done,
        () => 'The browser refused',
      ),
    );
    setTimeout(() => setTold(undefined), TOLD_MS);
  };
  return (
    <Button size="small" disabled={log.lineCount === 0} onClick={copy}>
      <CopyIcon />
      <span aria-live="polite">{told ?? 'Copy'}</span>
    </Button>
  );
}

function gather(log: OutputLog): { text: string; isAll: boolean } {
  const pieces: string[] = [];
  let size = 0;
  for (let n = 0; n < log.lineCount && size < MOST_CHARACTERS; ) {
    const lines = log.plainLines(n);
    if (!lines || lines.length === 0) return { text: pieces.join(''), isAll: false };
    const piece = `${lines.join('\n')}\n`;
    pieces.push(piece);
    size += piece.length;
    n += lines.length;
  }
  return { text: pieces.join(''), isAll: size < MOST_CHARACTERS };
}
