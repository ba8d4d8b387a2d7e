import { useState } from 'preact/hooks';
import { Button } from '../ui/button.tsx';
import { formatBytes } from '../ui/format-bytes.ts';
import { CopyIcon } from '../ui/icons.tsx';
import type { OutputLog } from './output-log.ts';

/** More is downloaded. */
const MAX_CHARACTERS = 4 << 20;
const TOLD_MS = 2_000;

/** Copies the output as text, from the beginning. */
export function CopyButton({ log }: { log: OutputLog }) {
  const [told, setTold] = useState<string>();
  const copy = async () => {
    const { text, isAll } = gather(log);
    const done = isAll ? 'Copied' : `Copied the first ${formatBytes(text.length)}`;
    setTold(text === '' ? 'Too long: download it' : (await write(text)) ? done : REFUSED);
    setTimeout(() => setTold(undefined), TOLD_MS);
  };
  return (
    <Button size="small" disabled={log.lineCount === 0} onClick={copy}>
      <CopyIcon />
      <span aria-live="polite">{told ?? 'Copy'}</span>
    </Button>
  );
}

/** Where the page comes without TLS, browsers have no clipboard for it. */
const REFUSED = 'The browser refuses: download it';
async function write(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** The beginning of a long output may not be here any more: then there is no text. */
function gather(log: OutputLog): { text: string; isAll: boolean } {
  const pieces: string[] = [];
  let size = 0;
  for (let n = 0; n < log.lineCount && size < MAX_CHARACTERS; ) {
    const lines = log.plainLines(n);
    if (!lines || lines.length === 0) return { text: pieces.join(''), isAll: false };
    const piece = `${lines.join('\n')}\n`;
    pieces.push(piece);
    size += piece.length;
    n += lines.length;
  }
  return { text: pieces.join(''), isAll: size < MAX_CHARACTERS };
}
