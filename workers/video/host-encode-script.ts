import { quoteWord } from '../host-agent/shell-quote.ts';
import {
  ffmpegArguments,
  hasEncoder,
  type Pictures,
  type VideoSettings,
  type VideoType,
} from './ffmpeg-arguments.ts';
import type { FrameKind } from './frames.ts';

/** The finished video's name in the run's scratch directory: whole, or not there. */
export const HOST_VIDEO = 'video';

/** Times that the script tells how far it is: a run may print no more than its host keeps. */
const TOLD = 200;

/** Of all arguments of one `cat`, in bytes: far below the 128 KiB that POSIX systems of any age take. */
const BATCH_BYTES = 64_000;

export interface HostEncodeOptions extends VideoSettings {
  images: readonly string[];
  /** What all frames are: see FrameCheck.first. */
  pictures: Pictures & { kind: FrameKind };
  /** The host's ffmpeg; its encoder was looked for by canHostEncode(). */
  ffmpeg: string;
}

export function canHostEncode(encoders: readonly string[], type: VideoType): boolean {
  return hasEncoder(encoders, type);
}

/**
 * A script for /bin/sh that makes the video on the host: `$WINDLASS_RUN/video`, there only when the
 * script ends with 0. Standard output: some `frame=` lines of ffmpeg, for ProgressReader;
 * standard error: what cat and ffmpeg complain about. It fails when a frame cannot be read, when
 * ffmpeg fails (with its exit code), and when the video has not one picture for each frame.
 *
 * What it says of a failure is read by toHostVideoError(). One fork for some hundred frames. A run that dies leaves nothing but `$WINDLASS_RUN`.
 */
export function hostEncodeScript({
  images,
  pictures,
  ffmpeg,
  ...settings
}: HostEncodeOptions): string {
  const { input, output } = ffmpegArguments(pictures, settings);
  const words = [ffmpeg, ...input, '-i', 'pipe:0', ...output, '-y'].map(quoteWord).join(' ');
  // sh has no pipefail: how cat and ffmpeg ended is told on the pipe that progress travels on.
  return `LC_ALL=C; export LC_ALL
part=\${WINDLASS_RUN:?}/${HOST_VIDEO}.part
feed() {
${batchPaths(images)
  .map(batch => `cat ${batch} || return`)
  .join('\n')}
}
{
  { feed; echo "fed=$?" >&4; } | ${words} "$part" 4>&-
  echo "encoded=$?"
} 4>&1 | {
  fed='' encoded='' frames=0 next=0
  while IFS= read -r line; do
    case $line in
      fed=*) fed=\${line#fed=} ;;
      encoded=*) encoded=\${line#encoded=} ;;
      frame=*)
        frames=\${line#frame=}
        [ "$((frames))" -lt "$next" ] || { echo "$line"; next=$((frames + ${Math.ceil(images.length / TOLD)})); } ;;
    esac
  done
  fail() { rm -f "$part"; exit "$1"; }
  [ "$encoded" = 0 ] || fail "\${encoded:-1}"
  [ "$fed" = 0 ] || fail "\${fed:-1}"
  if [ "$((frames))" -ne ${images.length} ]; then
    echo "the video has $((frames)) pictures for ${images.length} frames" >&2
    fail 1
  fi
  mv -f "$part" "$WINDLASS_RUN/${HOST_VIDEO}" || fail 1
}
`;
}

/** The paths as words, in their order, in lines that are short enough for one command each. */
function batchPaths(images: readonly string[]): string[] {
  const batches: string[] = [];
  let words: string[] = [];
  let bytes = 0;
  for (const path of images) {
    const length = Buffer.byteLength(path) + 1;
    if (words.length > 0 && bytes + length > BATCH_BYTES) {
      batches.push(words.join(' '));
      words = [];
      bytes = 0;
    }
    words.push(quoteWord(path));
    bytes += length;
  }
  return [...batches, words.join(' ')];
}
