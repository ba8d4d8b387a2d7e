import { useMemo, useState } from 'preact/hooks';
import type { Listing } from './entries.ts';
import { expandPattern, findGap, isPattern } from './frame-pattern.ts';
import { FrameSamples } from './frame-samples.tsx';

/** Which frames a video has, as texts of a form. */
interface FrameChoice {
  first: string;
  last: string;
  step: string;
  fps: string;
}

/** The frames that a pattern and a range take of a folder. */
export function useFrames(listing: Listing, pattern: string) {
  const [choice, choose] = useState<FrameChoice>({ first: '', last: '', step: '1', fps: '25' });
  const [first, last, step] = [choice.first, choice.last, choice.step].map(readNumber);
  const { frames, gap } = useMemo(() => {
    const range = { first, last, step: Math.max(1, step ?? 1) };
    return {
      frames: expandPattern(pattern, listing.names, range),
      gap: findGap(pattern, listing.names, range),
    };
  }, [pattern, listing, first, last, step]);
  return { choice, choose, frames, gap, options: { first, last, step, fps: Number(choice.fps) } };
}

interface FrameFieldsProps {
  sid: string;
  listing: Listing;
  pattern: string;
  onPattern: (pattern: string) => void;
  taken: ReturnType<typeof useFrames>;
}

/** Asks which frames, and shows some of them. */
export function FrameFields({ sid, listing, pattern, onPattern, taken }: FrameFieldsProps) {
  const { choice, choose, frames, gap } = taken;
  const isNumbered = !pattern.includes('*');
  const field = (name: keyof FrameChoice) => ({
    class: 'input',
    type: 'number',
    value: choice[name],
    onInput: ({ currentTarget: { value } }: { currentTarget: HTMLInputElement }) =>
      choose(before => ({ ...before, [name]: value })),
  });
  return (
    <>
      <label class="field">
        <span>Frames</span>
        <input
          class="input mono"
          value={pattern}
          required
          spellcheck={false}
          autocapitalize="none"
          onInput={event => onPattern(event.currentTarget.value)}
        />
        <small>
          A name in this folder with one number, such as <code>%04d</code>, or with <code>*</code>
        </small>
      </label>
      <div class="range">
        <label class="field">
          <span>{isNumbered ? 'From number' : 'From the'}</span>
          <input {...field('first')} min={0} placeholder={isNumbered ? 'lowest' : 'first'} />
        </label>
        <label class="field">
          <span>{isNumbered ? 'To number' : 'To the'}</span>
          <input {...field('last')} min={0} placeholder={isNumbered ? 'first gap' : 'last'} />
        </label>
        <label class="field">
          <span>One in</span>
          <input {...field('step')} min={1} required />
        </label>
        <label class="field">
          <span>Frames a second</span>
          <input {...field('fps')} min={0.1} max={120} step="any" required />
        </label>
      </div>
      {isPattern(pattern) ? (
        <FrameSamples
          sid={sid}
          listing={listing}
          frames={frames}
          gap={gap}
          fps={Number(choice.fps)}
        />
      ) : (
        <p class="notice" data-look="error">
          The pattern needs one number, such as %04d, or a *, and no slash.
        </p>
      )}
    </>
  );
}

const readNumber = (text: string): number | undefined => {
  const number = Number(text);
  return text === '' || !Number.isInteger(number) || number < 0 ? undefined : number;
};
