import { useState } from 'preact/hooks';
import type { Job } from '../service/jobs.ts';
import { apiPath, downloadPath } from '../service/place.ts';
import { formatBytes } from '../ui/format-bytes.ts';
import { DownloadIcon } from '../ui/icons.tsx';
import { formatCount } from '../ui/numbers.ts';
import { FrameList } from './frame-list.tsx';
import { formatTime } from './frames.ts';
import { KeepVideo } from './keep-video.tsx';
import { Player } from './player.tsx';
import type { VideoResult } from './result.ts';

/** A video that is there: it is played, and what else can be done with it. */
export function VideoPanel({ job, result }: { job: Job; result: VideoResult }) {
  const {
    type,
    bytes,
    frames,
    encoded,
    tiles,
    skipped = [],
    skippedCount = 0,
    gap,
    uncached,
  } = result;
  const [isGone, setGone] = useState(false);
  const facts = [
    type === 'video/webm' ? 'WebM' : 'MP4',
    formatBytes(bytes),
    `${formatCount(frames)} frames`,
    ...(tiles ? [formatTime(tiles.duration)] : []),
    `encoded ${encoded === 'host' ? `on ${job.host ?? 'the host'}` : 'by a worker'}`,
  ];
  // They are gone with the session.
  const still = (what: 'poster' | 'sprite') =>
    job.session === null
      ? undefined
      : apiPath(`remotes/${encodeURIComponent(job.session)}/videos/${job.id}/${what}`);
  return (
    <>
      <Player
        address={apiPath(`jobs/${job.id}/result`)}
        frames={frames}
        tiles={tiles}
        poster={still('poster')}
        sprite={still('sprite')}
        gone="It was kept for a day; in a project, videos are kept longer."
        onGone={() => setGone(true)}
      />
      <section class="card" aria-label="Result">
        <div class="card-head">
          <span class="muted">{facts.join(', ')}</span>
          {!isGone && (
            <a
              class="button"
              data-size="small"
              href={downloadPath(`jobs/${encodeURIComponent(job.id)}/result`, nameOf(job, type))}
              download
            >
              <DownloadIcon />
              Download the video
            </a>
          )}
        </div>
        {gap && (
          <p class="card-body">
            {formatCount(gap.after)} more after a gap at <code>{gap.path}</code> are not in it: make
            another one with a last number.
          </p>
        )}
        {uncached && <p class="card-body">It is not in the cache of the project: {uncached}</p>}
        {skippedCount > 0 && (
          <details class="card-body">
            <summary>
              {formatCount(skippedCount)} {skippedCount === 1 ? 'frame was' : 'frames were'} left
              out
            </summary>
            <FrameList frames={skipped} count={skippedCount} />
          </details>
        )}
        {!isGone && <KeepVideo job={job} />}
      </section>
    </>
  );
}

const nameOf = (job: Job, type: string) =>
  `${job.name ?? job.id}.${type === 'video/webm' ? 'webm' : 'mp4'}`;
