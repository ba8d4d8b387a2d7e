import type { TargetedPointerEvent } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { formatCount } from '../ui/numbers.ts';
import { formatTime, type Timing, timeOf } from './frames.ts';
import { placeTile, type Tiles } from './tiles.ts';

interface ScrubberProps {
  timing: Timing;
  frame: number;
  /** The video's address. */
  address: string;
  /** Small pictures, and where they are; gone with the session. Without them the video itself shows its frames. */
  sprite: { address: string; tiles: Tiles } | undefined;
  onShow: (frame: number) => void;
}

/** px, as video.css has it. */
const THUMB = 16;

/** Where in a video one is. A small picture tells what is at the place that is pointed at. */
export function Scrubber({ timing, frame, address, sprite, onShow }: ScrubberProps) {
  const { frames } = timing;
  const [pointed, setPointed] = useState<{ frame: number; left: number }>();
  const [isGone, setGone] = useState(false);
  const move = (event: TargetedPointerEvent<HTMLInputElement>) => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    const share = (event.clientX - left - THUMB / 2) / Math.max(1, width - THUMB);
    const within = Math.max(0, Math.min(1, share));
    setPointed({ frame: Math.round(within * (frames - 1)), left: 100 * within });
  };
  const timeText = (at: number) => formatTime((at * timing.duration) / frames);
  return (
    <div class="scrubber">
      {pointed && (
        <div class="scrub-preview" style={{ left: `${pointed.left}%` }} aria-hidden="true">
          {sprite && !isGone ? (
            <Tile {...sprite} time={timeOf(pointed.frame, timing)} onGone={() => setGone(true)} />
          ) : (
            <Glimpse address={address} time={timeOf(pointed.frame, timing)} />
          )}
          <span>
            {formatCount(pointed.frame + 1)}, {timeText(pointed.frame)}
          </span>
        </div>
      )}
      <input
        type="range"
        aria-label="Frame"
        aria-valuetext={`Frame ${frame + 1} of ${frames}, ${timeText(frame)}`}
        min={1}
        max={frames}
        step={1}
        value={frame + 1}
        onInput={event => onShow(Number(event.currentTarget.value) - 1)}
        onPointerMove={move}
        onPointerLeave={() => setPointed(undefined)}
      />
    </div>
  );
}

interface TileProps {
  address: string;
  tiles: Tiles;
  time: number;
  onGone: () => void;
}

function Tile({ address, tiles, time, onGone }: TileProps) {
  const { x, y } = placeTile(tiles, time);
  const { width, height } = tiles;
  return (
    <span class="scrub-picture" style={{ width: `${width}px`, height: `${height}px` }}>
      <img
        src={address}
        alt=""
        style={{ transform: `translate(${-x}px, ${-y}px)` }}
        onError={onGone}
      />
    </span>
  );
}

/** A frame of the video. A frame that is wanted while another one is sought comes next. */
function Glimpse({ address, time }: { address: string; time: number }) {
  const video = useRef<HTMLVideoElement>(null);
  const wanted = useRef(time);
  wanted.current = time;
  const seek = () => {
    const element = video.current;
    if (!element || element.seeking || element.readyState === 0) return;
    if (Math.abs(element.currentTime - wanted.current) > 0.001)
      element.currentTime = wanted.current;
  };
  useEffect(seek, [time]);
  return (
    <video
      class="scrub-picture"
      ref={video}
      src={address}
      muted
      playsInline
      preload="auto"
      tabIndex={-1}
      onLoadedMetadata={seek}
      onSeeked={seek}
    />
  );
}
