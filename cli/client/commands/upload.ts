import { WindlassError } from '../../../clients/typescript/src/error.ts';
import type { ParserParameters } from '../../../clients/typescript/src/parser-parameters.ts';
import { quoteWord } from '../../../clients/typescript/src/pieces/script-on-host.ts';
import { CommandError } from '../../command-error.ts';
import { printNotice } from '../../output/print-notice.ts';
import { printRecord } from '../../output/print-records.ts';
import { ProgressLine } from '../../output/progress.ts';
import { connect } from '../connect.ts';
import { findDefaultParser } from '../default-parser.ts';
import { type OpenedUpload, openUpload } from '../open-upload.ts';

export interface UploadOptions {
  model?: string;
  parser?: string;
  aid?: string[];
  /** Whether the artifacts are inputs of the model. */
  input?: boolean;
  /** Parameters of the parser, as `name=value`, the value as JSON or text. */
  set?: string[];
  resume?: string;
  json?: boolean;
}

/** Less than that is sent again sooner than its id is typed. */
const WORTH_RESUMING = 8 << 20;

/** `windlass upload`: sends files in parts and waits until they are parsed. */
export async function uploadFiles(paths: string[], options: UploadOptions): Promise<void> {
  const { model: mid, parser, aid: aids, input = false, resume, json } = options;
  if (resume === undefined && aids && aids.length !== paths.length)
    throw new CommandError(
      `The number of files is ${paths.length}, and that of their names ${aids.length}.`,
      { hint: 'Give --aid once for each file, or not at all.' },
    );
  const windlass = await connect();
  const target =
    resume === undefined
      ? { mid: requireModel(mid), parser: parser ?? findDefaultParser(paths, aids) }
      : undefined;
  const files = await openAll(paths);
  const canResume = !files.some(({ isPiped }) => isPiped);
  const line = new ProgressLine();
  let upload = resume;
  let wasSent = false;
  const sayHow = (what: string) => {
    const again = ['windlass upload --resume', upload, ...paths.map(quoteIfNeeded)].join(' ');
    printNotice(`${what}: ${again}`);
  };
  try {
    const sending = {
      onProgress: ({ sent, total }: { sent: number; total: number }) =>
        line.show(total === 0 ? 1 : sent / total, `of ${total} bytes sent`),
    };
    const job = await windlass.upload(
      files,
      target
        ? {
            ...readParameters(options.set),
            ...target,
            input,
            ...sending,
            ...(aids ? { aids } : {}),
            onBegin: id => {
              upload = id;
              const total = files.reduce((sum, { size }) => sum + size, 0);
              if (canResume && total > WORTH_RESUMING) sayHow('if this is interrupted, go on with');
            },
          }
        : {
            resume: resume as string,
            ...sending,
            onSentBefore: () => {
              wasSent = true;
            },
          },
    );
    line.end();
    const before = wasSent ? 'It had been sent before: nothing was sent now.' : '';
    const sentence = `Parsed: ${job.label ?? job.id}. ${before}`.trimEnd();
    await printRecord(job, { sentence, json });
    if (wasSent && json) printNotice(before);
  } catch (error) {
    line.end();
    if (upload !== undefined && canResume && isOpenAfter(error))
      sayHow('what was sent is kept; go on with');
    throw error;
  } finally {
    await Promise.all(files.map(file => file.close()));
  }
}

/** Whether the upload can be resumed after that error: not one that has ended, is gone, or is of other files. */
function isOpenAfter(error: unknown): boolean {
  if (!(error instanceof WindlassError)) return true;
  const { job, status, code } = error;
  return job === undefined && ![404, 409].includes(status) && code !== 'other_files';
}

const quoteIfNeeded = (path: string) => (/^[\w./+=:,@-]+$/.test(path) ? path : quoteWord(path));

function requireModel(mid: string | undefined): string {
  if (mid !== undefined) return mid;
  throw new CommandError('No model was given.', { hint: 'Give --model ID.' });
}

async function openAll(paths: string[]): Promise<OpenedUpload[]> {
  const files: OpenedUpload[] = [];
  for (const path of paths) files.push(await openUpload(path));
  return files;
}

/** Reads `name=value` texts. The service refuses parameters that the parser does not have. */
function readParameters(given: string[] = []): ParserParameters {
  return Object.fromEntries(
    given.map(text => {
      const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
      if (name === undefined || value === undefined)
        throw new CommandError(`--set ${text} has no value.`, { hint: 'Give it as name=value.' });
      return [name, parse(value)];
    }),
  );
}

function parse(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}
