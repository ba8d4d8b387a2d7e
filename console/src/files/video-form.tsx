import type { VideoOptions } from '@windlass/client';
import type { TargetedSubmitEvent } from 'preact';
import { useState } from 'preact/hooks';
import { useLocation } from 'wouter-preact';
import { serviceNow } from '../service/clock.ts';
import { join, nameOf } from '../service/paths.ts';
import { useMakeVideo } from '../service/videos.ts';
import { Button } from '../ui/button.tsx';
import { CloseIcon } from '../ui/icons.tsx';
import { Problem } from '../ui/problem.tsx';
import { CacheFields, readCacheFields } from '../video/cache-fields.tsx';
import { useReplaceQuestion } from '../video/replace-question.tsx';
import { suggestKey } from '../video/suggest-key.ts';
import type { Listing } from './entries.ts';
import { FrameFields, useFrames } from './frame-fields.tsx';
import { isPattern } from './frame-pattern.ts';
import { VideoOptionFields } from './video-options.tsx';

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
  const taken = useFrames(listing, pattern);
  const send = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    const location = readCacheFields(fields);
    const frames = { pattern: join(listing.path, pattern), ...taken.options };
    const options = { ...frames, ...readVideoOptions(fields), ...location };
    replacing.ask(location, () =>
      make.mutate(options, { onSuccess: job => navigate(`/jobs/${job}`) }),
    );
  };
  return (
    <section class="card" aria-label="Make a video">
      <div class="card-head">
        <h2>Make a video</h2>
        <Button look="quiet" size="icon" aria-label="Close" title="Close" onClick={onClose}>
          <CloseIcon />
        </Button>
      </div>
      <form class="card-body" onSubmit={send}>
        <FrameFields
          sid={sid}
          listing={listing}
          pattern={pattern}
          onPattern={onPattern}
          taken={taken}
        />
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
        <VideoOptionFields />
        {(make.error ?? replacing.error) && <Problem error={make.error ?? replacing.error} />}
        {replacing.question}
        <div class="dialog-end">
          <Button
            type="submit"
            look="primary"
            disabled={
              make.isPending ||
              replacing.isPending ||
              !isPattern(pattern) ||
              taken.frames.length === 0
            }
          >
            {make.isPending ? 'Asking for it …' : 'Make the video'}
          </Button>
        </div>
      </form>
    </section>
  );
}

/** What the form says of the video itself. */
function readVideoOptions(fields: FormData): Omit<VideoOptions, 'pattern'> {
  const text = (name: string) => String(fields.get(name) ?? '').trim();
  const { contentType, codec } = FORMATS[Number(text('format'))] ?? FORMATS[0];
  return {
    contentType,
    codec,
    background: text('background'),
    ...(text('width') !== '' && { width: Number(text('width')) }),
    ...(text('encode') !== '' && { encode: text('encode') as 'host' | 'worker' }),
    'on-bad-frame': fields.has('skip') ? 'skip' : 'fail',
    ...(text('label') !== '' && { label: text('label') as 'frame' | 'name' }),
    ...(text('name') !== '' && { name: text('name') }),
  };
}

/** Their folder, and what the frames are called without their number: those of two runs are often called alike. */
const wordsOf = (folder: string, pattern: string) =>
  `${nameOf(folder)}-${pattern.replace(/(%0?\d*d|\*).*$/, '')}`;
