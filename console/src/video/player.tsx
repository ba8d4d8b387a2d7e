import type { TargetedKeyboardEvent } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { findLoss } from '../service/videos.ts';
import { frameFrom, timeOf } from './frames.ts';
import { PlayerControls, SPEEDS } from './player-controls.tsx';
import { Scrubber } from './scrubber.tsx';
import type { Tiles } from './tiles.ts';
import '../styles/video.css';

/** How many frames the arrow keys go. */
const MANY = 10;
/** What a slider does with these is its own. */
const OF_SLIDERS = ['ArrowLeft', 'ArrowRight', 'Home', 'End'];

const FAILURES = {
  'logged out': {
    what: 'Your login has ended.',
    next: 'Load this page again once you are logged in.',
  },
  unreachable: {
    what: 'The service does not send it now.',
    next: 'Load this page again in a minute.',
  },
  'not played': {
    what: 'This browser cannot play it.',
    next: 'Download it, or make it as MP4 with H.264.',
  },
};

export interface PlayerProps {
  address: string;
  frames: number;
  poster?: string | undefined;
  sprite?: string | undefined;
  /** How the small pictures lie in the sprite. */
  tiles?: Tiles | undefined;
  autoPlay?: boolean;
  /** What to know of a video that is not there any more. */
  gone: string;
  /** Called where the video is not there any more. */
  onGone?: () => void;
}

/** Plays a video of frames, and shows each of them alone. */
export function Player({
  address,
  frames,
  poster,
  sprite,
  tiles,
  autoPlay,
  gone,
  onGone,
}: PlayerProps) {
  const failures = { ...FAILURES, gone: { what: 'The video is not there any more.', next: gone } };
  const video = useRef<HTMLVideoElement>(null);
  const box = useRef<HTMLElement>(null);
  const [isPlaying, setPlaying] = useState(false);
  const [failure, setFailure] = useState<keyof typeof failures>();
  const [isReady, setReady] = useState(false);
  const [duration, setDuration] = useState(tiles?.duration ?? 0);
  const [frame, setFrame] = useState(0);
  const [speed, setSpeed] = useState(1);
  const timing = { frames, duration };

  useEffect(() => {
    const element = video.current;
    if (!element || duration === 0) return;
    // Each frame that is shown reports its own time, which the player's clock does not. Frames that are skipped report
    // nothing.
    let waiting = element.requestVideoFrameCallback(function tell(_now, { mediaTime }) {
      if (!element.seeking) setFrame(frameFrom(mediaTime, { frames, duration }));
      waiting = element.requestVideoFrameCallback(tell);
    });
    return () => element.cancelVideoFrameCallback(waiting);
  }, [frames, duration]);

  const show = (to: number) => {
    const element = video.current;
    if (!element || !isReady) return;
    const wanted = Math.max(0, Math.min(frames - 1, to));
    element.pause();
    element.currentTime = timeOf(wanted, timing);
    setFrame(wanted);
  };
  const fail = async () => {
    const isCut = video.current?.error?.code === MediaError.MEDIA_ERR_NETWORK;
    const loss = await findLoss(address);
    // The link may be there again.
    setFailure(loss ?? (isCut ? 'unreachable' : 'not played'));
    if (loss === 'gone') onGone?.();
  };
  const toggle = () => {
    const element = video.current;
    if (!element || !isReady) return;
    if (element.paused) void element.play().catch(() => element.error && fail());
    else element.pause();
  };
  const fill = () => {
    if (document.fullscreenElement) void document.exitFullscreen();
    else void box.current?.requestFullscreen();
  };
  const setRate = (next: number | undefined) => {
    if (next === undefined) return;
    setSpeed(next);
    if (video.current) video.current.playbackRate = next;
  };
  const faster = (by: 1 | -1) => setRate(SPEEDS[SPEEDS.indexOf(speed) + by]);
  const keys: Record<string, () => void> = {
    ' ': toggle,
    k: toggle,
    f: fill,
    ',': () => show(frame - 1),
    '.': () => show(frame + 1),
    ArrowLeft: () => show(frame - MANY),
    ArrowRight: () => show(frame + MANY),
    Home: () => show(0),
    End: () => show(frames - 1),
    '<': () => faster(-1),
    '>': () => faster(1),
  };
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLElement>) => {
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    if (isTaken(event.target, event.key)) return;
    event.preventDefault();
    act();
  };
  return (
    <section class="card player" ref={box} aria-label="Video" onKeyDown={onKeyDown}>
      <video
        ref={video}
        src={address}
        poster={poster}
        style={tiles && { aspectRatio: `${tiles.width} / ${tiles.height}` }}
        autoPlay={autoPlay}
        preload="auto"
        muted
        playsInline
        tabIndex={0}
        aria-label="The picture. Space plays it; comma and full stop show the frame before and the next."
        onClick={toggle}
        onPlay={() => setPlaying(true)}
        onPause={() => setPlaying(false)}
        onLoadedMetadata={event => {
          const { duration: told } = event.currentTarget;
          setDuration(before => before || told);
          setReady(true);
        }}
        onError={fail}
      />
      {failure && (
        <p class="notice" data-look="error" role="alert">
          <strong>{failures[failure].what}</strong> {failures[failure].next}
        </p>
      )}
      <div class="player-controls">
        <Scrubber
          timing={timing}
          frame={frame}
          address={address}
          sprite={tiles && sprite !== undefined ? { address: sprite, tiles } : undefined}
          onShow={show}
        />
        <PlayerControls
          timing={timing}
          frame={frame}
          isPlaying={isPlaying}
          isReady={isReady}
          speed={speed}
          toggle={toggle}
          fill={fill}
          show={show}
          onSpeed={setRate}
        />
        <p class="player-keys muted">
          <kbd>space</kbd> plays, <kbd>,</kbd> <kbd>.</kbd> one frame, <kbd>←</kbd> <kbd>→</kbd>{' '}
          {MANY} frames, <kbd>&lt;</kbd> <kbd>&gt;</kbd> speed, <kbd>f</kbd> full screen
        </p>
      </div>
    </section>
  );
}

/** Whether a key means something to what has the focus. */
function isTaken(target: EventTarget | null, key: string): boolean {
  if (target instanceof HTMLSelectElement) return true;
  if (target instanceof HTMLButtonElement) return key === ' ';
  return target instanceof HTMLInputElement && OF_SLIDERS.includes(key);
}
