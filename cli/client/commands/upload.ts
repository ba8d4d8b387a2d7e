import { type OpenedFile, openFile } from '../../../clients/typescript/src/node.ts';
import { CommandError } from '../../command-error.ts';
import { connect } from '../connect.ts';
import { printRecord } from '../print-records.ts';
import { ProgressLine } from '../progress.ts';

export interface UploadOptions {
  model?: string;
  parser: string;
  aid?: string[];
  /** Parameters of the parser, as `name=value`, the value as JSON or text. */
  set?: string[];
  resume?: string;
  json?: boolean;
}

/** `windlass upload`: sends files in parts and waits until they are parsed. */
export async function uploadFiles(paths: string[], options: UploadOptions): Promise<void> {
  const { model: mid, parser, aid: aids, resume, json } = options;
  const windlass = await connect();
  const files = await openAll(paths);
  const line = new ProgressLine();
  let upload = resume;
  try {
    const sending = {
      onProgress: ({ sent, total }: { sent: number; total: number }) =>
        line.show(total === 0 ? 1 : sent / total, `of ${total} bytes sent`),
    };
    const job = await windlass.upload(
      files,
      resume === undefined
        ? {
            ...readParameters(options.set),
            ...{ mid: requireModel(mid), parser, ...sending },
            ...(aids ? { aids } : {}),
            onBegin: id => {
              upload = id;
            },
          }
        : { resume, ...sending },
    );
    line.end();
    await printRecord(job, { sentence: `Parsed: ${job.label ?? job.id}.`, json });
  } catch (error) {
    line.end();
    if (upload !== undefined)
      process.stderr.write(
        `windlass: what was sent is kept; go on with: windlass upload --resume ${upload} ${paths.join(' ')}\n`,
      );
    throw error;
  } finally {
    await Promise.all(files.map(file => file.close()));
  }
}

function requireModel(mid: string | undefined): string {
  if (mid !== undefined) return mid;
  throw new CommandError('It is not said where the files go.', { hint: 'Give --model ID.' });
}

async function openAll(paths: string[]): Promise<OpenedFile[]> {
  const files: OpenedFile[] = [];
  for (const path of paths)
    files.push(
      await openFile(path).catch((cause: unknown) => {
        throw new CommandError(`${path} cannot be read.`, { cause });
      }),
    );
  return files;
}

function readParameters(given: string[] = []): Record<string, unknown> {
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
