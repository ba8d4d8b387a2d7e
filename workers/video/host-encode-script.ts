import { NO_FUNCTIONS } from '../host-agent/no-functions.ts';
import { quoteWord } from '../host-agent/shell-quote.ts';
import { limitScript } from '../sandbox/confine.ts';
import { ffmpegArguments, type VideoSettings } from './ffmpeg-arguments.ts';
import { LABELS_PIPE } from './filter-graph.ts';
import type { FrameKind, Pictures } from './frame-info.ts';
import { type Labels, labelScript } from './frame-labels.ts';
import { quotePath } from './frame-path.ts';
import type { VideoLimits } from './video-limits.ts';
import { batchWords } from './word-batches.ts';

/** Kinds that ffmpeg separates when files are concatenated without lengths. */
export type HostKind = Extract<FrameKind, 'png' | 'jpeg'>;

/** The finished video in the run's directory: complete, or absent. */
export const HOST_VIDEO = 'video';

/** The stills beside the video, unless its pictures are large; see ffmpegArguments(). */
export const HOST_STILLS = { poster: 'poster.jpg', sprite: 'sprite.jpg' };

/** The most progress lines: a run may print no more than its host spools. */
const MAX_PROGRESS_LINES = 200;

/** What one video can use at once on any host. */
const MAX_PROCESSORS = 64;

export interface HostEncodeOptions extends VideoSettings {
  images: readonly string[];
  /** Kind and size of all frames: see FrameValidator.first. */
  pictures: Pictures & { kind: HostKind };
  /** The host's ffmpeg, which has the encoder. */
  ffmpeg: string;
  limits: VideoLimits;
  labels?: Labels;
}

/**
 * A script for /bin/sh that encodes the video to `$WINDLASS_RUN/video`, valid only after exit status 0; it writes
 * nowhere else. stdout has some `frame=` lines for FfmpegProgress; stderr has messages for toHostVideoError(). Fails
 * with ffmpeg's status, and if a frame is unreadable or has no picture in the video.
 *
 * ffmpeg gets its limits, no network if the host permits that, and a minimal environment (decision 44).
 */
export function hostEncodeScript(options: HostEncodeOptions): string {
  const { images, pictures, ffmpeg, limits, ...settings } = options;
  const { labels } = settings;
  const plan = (frames?: number) =>
    ffmpegArguments(pictures, { ...settings, framing: 'files', frames });
  const processorSeconds = limits.seconds * MAX_PROCESSORS;
  const quote = (words: readonly string[]) => words.map(quoteWord).join(' ');
  const command = ({ input, output, stills }: ReturnType<typeof plan>) =>
    [
      `${quote([ffmpeg, ...input, '-i', 'pipe:0', ...output, '-y'])} "$part"`,
      ...(stills ? [`${quote(stills.poster)} "$poster" ${quote(stills.sprite)} "$sprite"`] : []),
    ].join(' ');
  // sh has no pipefail, so both exit statuses go through the pipe that carries progress.
  return `${NO_FUNCTIONS}
LC_ALL=C; export LC_ALL
part=\${WINDLASS_RUN:?}/${HOST_VIDEO}.part
poster=$WINDLASS_RUN/${HOST_STILLS.poster} sprite=$WINDLASS_RUN/${HOST_STILLS.sprite}
alone=''
unshare --user --net true 2>/dev/null && alone=yes
confined() (
  ${limitScript({ ...limits, processorSeconds })}
  set -- env -i PATH="$PATH" \${LD_LIBRARY_PATH:+"LD_LIBRARY_PATH=$LD_LIBRARY_PATH"} LC_ALL=C "$@"
  [ -z "$alone" ] || set -- unshare --user --net -- "$@"
  exec "$@"
)
feed() {
${batchWords(images.map(quotePath))
  .map(batch => `cat ${batch} || return`)
  .join('\n')}
}
with_stills() { confined ${command(plan(images.length))}; }
without_stills() { confined ${command(plan())}; }
feed_to() {
  { feed; echo "fed=$?" >&4; } | "$1" 4>&-
}
encode() {
  ${labels ? `{ ${labelScript(labels)}; echo "labelled=$?" >&4; } | feed_to "$1" ${LABELS_PIPE}<&0` : 'feed_to "$1"'}
}
{
  encode with_stills
  code=$?
  # What fails before any of the video is written may have failed for its stills.
  [ "$code" = 0 ] || [ -s "$part" ] || {
    rm -f "$poster" "$sprite"
    encode without_stills
    code=$?
  }
  echo "encoded=$code"
} 4>&1 | {
  fed='' encoded='' labelled=${labels ? "''" : 0} frames=0 next=0
  while IFS= read -r line; do
    case $line in
      fed=*) fed=\${line#fed=} ;;
      encoded=*) encoded=\${line#encoded=} ;;
      labelled=*) labelled=\${line#labelled=} ;;
      frame=*)
        frames=\${line#frame=}
        [ "$((frames))" -lt "$next" ] || { echo "$line"; next=$((frames + ${Math.ceil(images.length / MAX_PROGRESS_LINES)})); } ;;
    esac
  done
  fail() { rm -f "$part" "$poster" "$sprite"; exit "$1"; }
  [ "$encoded" = 0 ] || fail "\${encoded:-1}"
  [ "$fed" = 0 ] || fail "\${fed:-1}"
  [ "$labelled" = 0 ] || fail "\${labelled:-1}"
  if [ "$((frames))" -ne ${images.length} ]; then
    echo "the video has $((frames)) pictures for ${images.length} frames" >&2
    fail 1
  fi
  mv -f "$part" "$WINDLASS_RUN/${HOST_VIDEO}" || fail 1
}
`;
}
