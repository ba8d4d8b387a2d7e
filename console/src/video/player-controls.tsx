import { Button } from '../ui/button.tsx';
import { FullIcon, PauseIcon, PlayIcon, StepBackIcon, StepIcon } from '../ui/icons.tsx';
import { formatCount } from '../ui/numbers.ts';
import { formatTime, type Timing } from './frames.ts';

export const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4];

interface PlayerControlsProps {
  timing: Timing;
  frame: number;
  isPlaying: boolean;
  isReady: boolean;
  speed: number;
  toggle: () => void;
  fill: () => void;
  show: (frame: number) => void;
  onSpeed: (speed: number) => void;
}

export function PlayerControls(props: PlayerControlsProps) {
  const { timing, frame, isPlaying, isReady, speed, toggle, fill, show, onSpeed } = props;
  const { frames, duration } = timing;
  const step = (label: string, to: number, Icon: typeof StepIcon) => (
    <Button
      size="icon"
      look="quiet"
      aria-label={label}
      title={label}
      disabled={!isReady}
      repeats
      onClick={() => show(to)}
    >
      <Icon />
    </Button>
  );
  const play = isPlaying ? 'Pause' : 'Play';
  return (
    <div class="row">
      {step('The frame before', frame - 1, StepBackIcon)}
      <Button size="icon" aria-label={play} title={play} disabled={!isReady} onClick={toggle}>
        {isPlaying ? <PauseIcon /> : <PlayIcon />}
      </Button>
      {step('The next frame', frame + 1, StepIcon)}
      <span class="player-place">
        <span>
          Frame <strong>{formatCount(frame + 1)}</strong> of {formatCount(frames)}
        </span>
        <span class="muted">
          {formatTime(frames > 0 ? (frame * duration) / frames : 0)} of {formatTime(duration)}
        </span>
      </span>
      <select
        class="input speed"
        aria-label="Speed"
        value={speed}
        onChange={event => onSpeed(Number(event.currentTarget.value))}
      >
        {SPEEDS.map(each => (
          <option key={each} value={each}>
            {each} ×
          </option>
        ))}
      </select>
      <Button size="icon" look="quiet" aria-label="Full screen" title="Full screen" onClick={fill}>
        <FullIcon />
      </Button>
    </div>
  );
}
