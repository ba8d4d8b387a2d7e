import type { NamedFrame } from './result.ts';
import '../styles/video.css';
import { formatCount } from '../ui/numbers.ts';

/** Frames that a video could not have, and why. */
export const FrameList = ({ frames, count }: { frames: NamedFrame[]; count: number }) => (
  <>
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it is scrolled by keys, too. */}
    <section class="skipped" aria-label="Their names" tabIndex={0}>
      <ul>
        {frames.map(({ index, path, reason }) => (
          <li key={index}>
            <code>{path}</code> <span class="muted">{reason}</span>
          </li>
        ))}
      </ul>
    </section>
    {count > frames.length && <p class="muted">and {formatCount(count - frames.length)} more</p>}
  </>
);
