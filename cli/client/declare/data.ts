import type { Command } from 'commander';
import { collect, json, wholeNumber, withExample } from './options.ts';

export function addDataCommands(program: Command): void {
  withExample(
    program
      .command('upload')
      .description('send files into a model, and wait until they are parsed')
      .argument('<file...>')
      .option('--model <id>', 'where they go')
      .option('--parser <name>', 'csv, json, blob, …', 'csv')
      .option('--aid <name>', 'of each artifact, in the order of the files', collect)
      .option('--set <name=value>', 'a parameter of the parser; may be repeated', collect)
      .option('--resume <id>', 'go on with an upload that was begun with the same files')
      .addOption(json())
      .action(async (files, options) =>
        (await import('../commands/upload.ts')).uploadFiles(files, options),
      ),
    'windlass upload day.csv --model ID --aid day --set delimiter=;',
  );
  withExample(
    program
      .command('rows')
      .description('print rows of a table')
      .argument('<model>')
      .argument('<table>', 'the name of the artifact')
      .option('--columns <name>', 'only this one; may be repeated', collect)
      .option('--sort <name>', 'by this column, -name descending; may be repeated', collect)
      .option('--filter <column:op:value>', 'rows that pass; may be repeated', collect)
      .option('--offset <number>', 'from this row on', wholeNumber)
      .option('--limit <number>', 'how many', wholeNumber, 100)
      .option('--csv', 'as CSV, up to 1,000,000 rows')
      .addOption(json())
      .action(async (model, table, options) =>
        (await import('../commands/rows.ts')).printRows(model, table, options),
      ),
    'windlass rows MODEL day --sort=-temperature --filter sky:eq:rain --csv',
  );
}
