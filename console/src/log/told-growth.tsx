import { useEffect, useState } from 'preact/hooks';
import { formatCount } from '../ui/numbers.ts';
import type { OutputLog } from './output-log.ts';

/** So often at most; lines that come by the thousand are no news one by one. */
const TELL_MS = 15_000;

/** Announces to screen readers how the output grows, and its end at once. */
export function ToldGrowth({ log }: { log: OutputLog }) {
  const [told, tell] = useState('');
  const { lineCount, isWhole } = log;
  const hasLines = lineCount > 0;
  useEffect(() => {
    if (isWhole) {
      tell(`The output has ended. Lines: ${formatCount(log.lineCount)}.`);
      return;
    }
    const say = () =>
      log.lineCount > 0 && tell(`Lines of output so far: ${formatCount(log.lineCount)}.`);
    say();
    const timer = setInterval(say, TELL_MS);
    return () => clearInterval(timer);
  }, [log, isWhole, hasLines]);
  return (
    <p class="visually-hidden" role="status">
      {told}
    </p>
  );
}
