import type { VideoOptions } from '@windlass/client';
import type { TargetedSubmitEvent } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { useLocation } from 'wouter-preact';
import { serviceNow } from '../service/clock.ts';
import { useMakeVideo } from '../service/videos.ts';
import { Button } from '../ui/button.tsx';
import { CloseIcon } from '../ui/icons.tsx';
import { Problem } from '../ui/problem.tsx';
import { CacheFields, readCacheFields } from '../video/cache-fields.tsx';
import { useReplaceQuestion } from '../video/replace-question.tsx';
import { suggestKey } from '../video/suggest-key.ts';
import type { Listing } from './entries.ts';
import { expandPattern, isPattern } from './frame-pattern.ts';
import { FrameSamples } from './frame-samples.tsx';
import { join, nameOf } from './paths.ts';

interface VideoFormProps {
  sid: string;
  listing: Listing;
  pattern: string;
  onPattern: (pattern: string) => void;
  onClose: () => void;
}

const FORMATS = [
  { name: 'MP4, H.264: plays everywhere', contentType: 'video/mp4', codec: 'h264' },
  { name: 'MP4, AV1: smaller, takes longer', contentType: 'video/mp4', codec: 'av1' },
  { name: 'WebM, VP9', contentType: 'video/webm', codec: 'vp9' },
] as const;

/** Makes a video of the frames that a pattern takes, which are seen before it is made. */
export function VideoForm({ sid, listing, pattern, onPattern, onClose }: VideoFormProps) {
  const make = useMakeVideo(sid);
  const replacing = useReplaceQuestion();
  const [opened] = useState(() => new Date(serviceNow()));
  const [, navigate] = useLocation();
  const [range, setRange] = useState<Record<'first' | 'last' | 'step', string>>({
    ...{ first: '', last: '', step: '1' },
  });
  const [fps, setFps] = useState('25');
  const [first, last, step] = [range.first, range.last, range.step].map(readNumber);
  const frames = useMemo(
    () => expandPattern(pattern, listing.names, { first, last, step: Math.max(1, step ?? 1) }),
    [pattern, listing, first, last, step],
  );
  const isNumbered = !pattern.includes('*');
  const send = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    const text = (name: string) => String(fields.get(name) ?? '').trim();
    const { contentType, codec } = FORMATS[Number(text('format'))] ?? FORMATS[0];
    const place = readCacheFields(fields);
    const options: VideoOptions = {
      ...{ pattern: join(listing.path, pattern), first, last, step, fps: Number(fps) },
      ...{ contentType, codec, background: text('background') },
      ...(text('width') !== '' && { width: Number(text('width')) }),
      ...(text('encode') !== '' && { encode: text('encode') as 'host' | 'worker' }),
      'on-bad-frame': fields.has('skip') ? 'skip' : 'fail',
      ...(text('label') !== '' && { label: text('label') as 'frame' | 'name' }),
      ...(text('name') !== '' && { name: text('name') }),
      ...place,
    };
    replacing.ask(place, () =>
      make.mutate(options, { onSuccess: job => navigate(`/jobs/${job}`) }),
    );
  };
  const field = (name: keyof typeof range) => ({
    ...{ class: 'input', type: 'number', value: range[name], min: name === 'step' ? 1 : 0 },
    onInput: ({ currentTarget: { value } }: { currentTarget: HTMLInputElement }) =>
      setRange(before => ({ ...before, [name]: value })),
  });
  return (
    <section class="card" aria-label="Make a video">
      <div class="card-head">
        <h2>Make a video</h2>
        <Button look="quiet" size="icon" aria-label="Close" title="Close" onClick={onClose}>
          <CloseIcon />
        </Button>
      </div>
      <form class="card-body" onSubmit={send}>
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
            <input {...field('first')} placeholder={isNumbered ? 'lowest' : 'first'} />
          </label>
          <label class="field">
            <span>{isNumbered ? 'To number' : 'To the'}</span>
            <input {...field('last')} placeholder={isNumbered ? 'first gap' : 'last'} />
          </label>
          <label class="field">
            <span>One in</span>
            <input {...field('step')} required />
          </label>
          <label class="field">
            <span>Frames a second</span>
            <input
              class="input"
              type="number"
              required
              min={0.1}
              max={120}
              step="any"
              value={fps}
              onInput={event => setFps(event.currentTarget.value)}
            />
          </label>
        </div>
        {isPattern(pattern) ? (
          <FrameSamples {...{ sid, listing, frames }} fps={Number(fps)} />
        ) : (
          <p class="notice" data-look="error">
            The pattern needs one number, such as %04d, or a *, and no slash.
          </p>
        )}
        <label class="field">
          <span>Format</span>
          <select class="input" name="format">
            {FORMATS.map(({ name }, n) => (
              <option key={name} value={n}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label class="check">
          <input type="checkbox" name="skip" />
          <span>Leave out frames that are missing or broken; else it fails and names them</span>
        </label>
        <CacheFields suggestion={suggestKey(wordsOf(listing.path, pattern), opened)} />
        <details>
          <summary>Options</summary>
          <div class="form">
            <div class="two">
              <label class="field">
                <span>Name</span>
                <input
                  class="input"
                  name="name"
                  maxLength={200}
                  placeholder="in the list of jobs"
                />
              </label>
              <label class="field">
                <span>Width</span>
                <input
                  class="input"
                  type="number"
                  name="width"
                  min={2}
                  max={7680}
                  placeholder="that of the frames"
                />
              </label>
              <label class="field">
                <span>Encoded</span>
                <select class="input" name="encode">
                  <option value="">on the host if it can, else here</option>
                  <option value="host">on the host</option>
                  <option value="worker">here</option>
                </select>
              </label>
              <label class="field">
                <span>Drawn into a corner</span>
                <select class="input" name="label">
                  <option value="">nothing</option>
                  <option value="frame">the number of the frame</option>
                  <option value="name">the name of its file</option>
                </select>
              </label>
              <label class="field">
                <span>Behind what is transparent</span>
                <input class="input" type="color" name="background" defaultValue="#000000" />
              </label>
            </div>
          </div>
        </details>
        {(make.error ?? replacing.error) && <Problem error={make.error ?? replacing.error} />}
        {replacing.question}
        <div class="dialog-end">
          <Button
            type="submit"
            look="primary"
            disabled={
              make.isPending || replacing.isPending || !isPattern(pattern) || frames.length === 0
            }
          >
            {make.isPending ? 'Asking for it …' : 'Make the video'}
          </Button>
        </div>
      </form>
    </section>
  );
}

const readNumber = (text: string): number | undefined => {
  const number = Number(text);
  return text === '' || !Number.isInteger(number) || number < 0 ? undefined : number;
};

/** Their folder, and what the frames are called without their number: those of two runs are often called alike. */
const wordsOf = (folder: string, pattern: string) =>
  `${nameOf(folder)}-${pattern.replace(/(%0?\d*d|\*).*$/, '')}`;
