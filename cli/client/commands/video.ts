import { posix } from 'node:path';
import { errorOfJob } from '../../../clients/typescript/src/jobs.ts';
import { quoteWord } from '../../../clients/typescript/src/pieces/script-on-host.ts';
import type { Session } from '../../../clients/typescript/src/session.ts';
import type { Video } from '../../../clients/typescript/src/video.ts';
import { CommandError } from '../../command-error.ts';
import { printNotice } from '../../output/print-notice.ts';
import { printRecord } from '../../output/print-records.ts';
import { ProgressLine } from '../../output/progress.ts';
import { abortWhenInterrupted } from '../abort-when-interrupted.ts';
import { cancelWhenInterrupted } from '../cancel-when-interrupted.ts';
import { connect } from '../connect.ts';
import { findOrOpenSession, type LoginChoice } from '../find-session.ts';
import { requireWritable, saveFile } from '../save-file.ts';

export interface VideoOptions extends LoginChoice {
  output: string;
  fps?: number;
  width?: number;
  quality?: number;
  label?: 'frame' | 'name';
  name?: string;
  json?: boolean;
}

/** `windlass video`: of frames on a host, into a file here. */
export async function makeVideo(
  host: string,
  words: string[],
  { output, user, key, jumpUser, jumpKey, json, ...options }: VideoOptions,
): Promise<void> {
  const contentType = typeOf(output);
  await requireWritable(output);
  const windlass = await connect();
  const session = await findOrOpenSession(windlass, host, { user, key, jumpUser, jumpKey });
  const frames = await findFrames(session, words);
  const asked = session.video({ ...frames, contentType, ...options });
  const interruption = cancelWhenInterrupted(
    windlass,
    asked.then(video => video.job),
  );
  const video = await asked;
  const line = new ProgressLine();
  const job = await windlass
    .wait(video.job, {
      onChange: ({ progress, message }) => line.show(progress ?? 0, message ?? ''),
    })
    .finally(() => line.end());
  interruption.stop();
  if (job.state === 'cancelled' && interruption.status !== undefined) {
    process.exitCode = interruption.status;
    return;
  }
  if (job.state !== 'succeeded') throw errorOfJob(job);
  const status = await download(video, output);
  if (status !== undefined) {
    process.exitCode = status;
    return;
  }
  const { frames: count } = job.result as { frames: number };
  await printRecord(job, { sentence: `${output}: ${count} frames`, json });
}

/** Where it fails, the work is not lost: it says how to get the video. The status to end with where a signal ended it. */
async function download(video: Video, output: string): Promise<number | undefined> {
  const interruption = abortWhenInterrupted();
  const { signal } = interruption;
  try {
    await saveFile(output, video.chunks({ signal }), { signal });
    return undefined;
  } catch (error) {
    printNotice(`the video is kept for a day: windlass open ${video.job}`);
    if (signal.aborted) return interruption.status;
    throw error;
  } finally {
    interruption.stop();
  }
}

function typeOf(output: string): 'video/mp4' | 'video/webm' {
  if (output.endsWith('.mp4')) return 'video/mp4';
  if (output.endsWith('.webm')) return 'video/webm';
  throw new CommandError(`${output} is neither .mp4 nor .webm.`, {
    hint: 'Name the output FILE.mp4 or FILE.webm.',
  });
}

/** In the name of a file, such as `%05d.png`. */
const NUMBERED = /%\d*d[^/]*$/;

/** Names that are numbered as ffmpeg writes them are looked for by the service, everything else by the account's shell. */
async function findFrames(
  session: Session,
  words: string[],
): Promise<{ pattern: string } | { images: string[] }> {
  const [word = ''] = words;
  if (words.length > 1 || !NUMBERED.test(word))
    return { images: await expandOnHost(session, words) };
  const folders = await expandOnHost(session, [posix.dirname(word)]);
  const [folder = ''] = folders;
  if (folders.length > 1)
    throw new CommandError(`The frames of ${word} are in several folders: ${folders.join(', ')}.`, {
      hint: 'Name one of them, or give a pattern with * instead of %d to take the frames of all.',
    });
  return { pattern: posix.join(folder, posix.basename(word)) };
}

/**
 * The files to which the account's shell expands words such as `~/frames/*.png`, those of a pattern in natural order. A
 * name that is no pattern, or a dangling link, stays even where there is no such file: the service reports it.
 */
async function expandOnHost(session: Session, words: string[]): Promise<string[]> {
  const absolute = `case $f in /*) ;; *) f=$PWD/$f ;; esac`;
  const print = (test: string) => `${absolute}; ${test}printf '%s\\0' "$f"`;
  const expand = (word: string) =>
    `for f in ${word}; do ${print(/[*?[]/.test(word) ? '{ [ -e "$f" ] || [ -L "$f" ]; } && ' : '')}; done; printf '\\0'`;
  const list = `cd || exit 1; ${words.map(expand).join('; ')}; true`;
  // Whatever the account's shell is.
  const { output, truncated } = await session.run(`sh -c ${quoteWord(list)}`).wait();
  const inOrder = new Intl.Collator('en', { numeric: true }).compare;
  const files = output
    .split('\0\0')
    .flatMap(ofWord => ofWord.split('\0').filter(Boolean).sort(inOrder));
  if (truncated)
    throw new CommandError('These are too many frames.', {
      hint: 'Give a pattern such as %05d.png, or fewer frames.',
    });
  if (files.length === 0)
    throw new CommandError(`The host has no file like ${words.join(' ')}.`, {
      hint: 'Quote patterns, so that the shell here leaves them as they are.',
    });
  return files;
}
