/**
 * A process of its own that reads tables: what a broken or hostile file does to the reader (a crash, all the memory) is
 * done to this process alone. It ends when its standard input does, so it never outlives the worker that started it.
 */
import { raiseOomScore } from '../../sandbox/oom-score.ts';
import { makeTable } from '../csv/make-table.ts';
import { classify } from './duckdb.ts';
import { makeView } from './make-view.ts';
import { type TableAnswer, TableError, type TableRequest } from './protocol.ts';

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
// The worker is gone, or wants no answer. DuckDB's threads would be waited for by an orderly exit.
process.stdin.on('close', () => process.kill(process.pid, 'SIGKILL'));

async function answer(request: TableRequest): Promise<void> {
  let told = 0;
  const onProgress = (share: number) => {
    if (Date.now() - told < 400) return;
    told = Date.now();
    tell({ progress: Math.min(1, share) });
  };
  try {
    const made =
      request.kind === 'csv'
        ? await makeTable(request, onProgress)
        : await makeView(request, onProgress);
    tell({ made });
  } catch (error) {
    tell(explain(error));
  }
  // The worker closes standard input once it has read this.
}

function explain(error: unknown): TableAnswer {
  if (error instanceof TableError) {
    const { problems, count, hint } = error;
    return { refused: { problems, count, hint } };
  }
  const words = error instanceof Error ? `${error.message}\n${error.stack}` : String(error);
  return { failed: classify(error), words: words.slice(0, 4_000) };
}

function tell(answer: TableAnswer): void {
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
