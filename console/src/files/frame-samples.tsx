import { useMemo, useState } from 'preact/hooks';
import { join } from '../service/paths.ts';
import { formatCount } from '../ui/numbers.ts';
import { findEntry, type Listing } from './entries.ts';
import { Picture } from './picture.tsx';

interface FrameSamplesProps {
  sid: string;
  listing: Listing;
  /** Names in the folder; some may be missing there. */
  frames: string[];
  /** The name where the numbers end though more follow. */
  gap: { name: string; after: number } | undefined;
  fps: number;
}

/** The frames that a video will have: how many, how long they last, and each of them by a slider. */
export function FrameSamples({ sid, listing, frames, gap, fps }: FrameSamplesProps) {
  const [wanted, setWanted] = useState(0);
  // A slider passes by many; where it stays is read.
  const [settled, settle] = useState(0);
  const present = useMemo(() => new Set(listing.names), [listing]);
  const missing = useMemo(
    () => frames.filter(frame => !present.has(frame)).length,
    [frames, present],
  );
  if (frames.length === 0)
    return (
      <p class="notice" data-look="error" role="status">
        No file in this folder matches.
      </p>
    );
  const at = Math.min(wanted, frames.length - 1);
  const name = frames[Math.min(settled, frames.length - 1)] ?? '';
  const entry = findEntry(listing, name);
  return (
    <fieldset class="frames" aria-label="Preview of the frames">
      <p role="status">
        <strong>
          {formatCount(frames.length)} {frames.length === 1 ? 'frame' : 'frames'}
        </strong>
        {fps > 0 && `, ${formatSeconds(frames.length / fps)}`}
        {missing > 0 && (
          <strong class="frames-missing">
            , {formatCount(missing)} {missing === 1 ? 'is' : 'are'} missing
          </strong>
        )}
        {gap && (
          <strong class="frames-missing">
            , {formatCount(gap.after)} more after a gap at {gap.name}: give To number
          </strong>
        )}
      </p>
      <div class="frame-picture">
        {entry ? (
          <Picture key={name} sid={sid} path={join(listing.path, name)} entry={entry} />
        ) : (
          <p class="muted">It is missing.</p>
        )}
      </div>
      <label class="field">
        <span class="ellipsis mono" title={frames[at]}>
          {frames[at]}
        </span>
        <input
          type="range"
          aria-label="Frame of the preview"
          min={1}
          max={frames.length}
          value={at + 1}
          onInput={event => setWanted(Number(event.currentTarget.value) - 1)}
          onChange={event => settle(Number(event.currentTarget.value) - 1)}
        />
      </label>
    </fieldset>
  );
}

const formatSeconds = (seconds: number) =>
  seconds < 60
    ? `${Number(seconds.toFixed(1))} s`
    : `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
