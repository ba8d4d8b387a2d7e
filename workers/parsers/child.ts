/**
 * The table process. A file that crashes the reader or takes all memory affects only this process. It exits at the end
 * of its standard input, and so with its worker.
 */
import { raiseOomScore } from '../sandbox/oom-score.ts';
import { readFile } from './read-file.ts';
import { classifyError, hadMost } from './table/duckdb.ts';
import { makeView } from './table/make-view.ts';
import { type TableAnswer, TableError, type TableRequest } from './table/protocol.ts';

process.title = 'windlass-child-parse';
raiseOomScore();
let line = '';
let isBusy = false;
process.stdin.setEncoding('utf8');
process.stdin.on('data', piece => {
  line += piece;
  if (isBusy || !line.includes('\n')) return;
  isBusy = true;
  void answer(JSON.parse(line) as TableRequest);
});
// The worker is gone or does not need an answer. A regular exit would wait for DuckDB's threads.
process.stdin.on('close', () => process.kill(process.pid, 'SIGKILL'));

async function answer(request: TableRequest): Promise<void> {
  let reportedAt = 0;
  const onProgress = (share: number) => {
    if (Date.now() - reportedAt < 400) return;
    reportedAt = Date.now();
    send({ progress: Math.min(1, share) });
  };
  try {
    const isFile = request.kind === 'file';
    send({ made: await (isFile ? readFile(request, onProgress) : makeView(request, onProgress)) });
  } catch (error) {
    send(toAnswer(error));
  }
  // The worker closes standard input once it has read the answer.
}

function toAnswer(error: unknown): TableAnswer {
  if (error instanceof TableError) {
    const { problems, count, hint } = error;
    return { refused: { problems, count, hint } };
  }
  const message = error instanceof Error ? `${error.message}\n${error.stack}` : String(error);
  return {
    failed: classifyError(error),
    message: message.slice(0, 4_000),
    hadMost: hadMost(),
  };
}

function send(answer: TableAnswer): void {
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
