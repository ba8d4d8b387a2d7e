import type { Command } from 'commander';
import { collect, json, positiveNumber, wholeNumber, withExample } from '../../options.ts';

export function addDataCommands(program: Command): void {
  addProjects(program);
  withExample(
    program
      .command('upload')
      .description('send files into a model, and wait until they are parsed')
      .argument('<file...>')
      .option('--model <id>', 'the model that the files go into')
      .option(
        '--parser <name>',
        "the parser: csv, json, blob, …; by default that of the files' names",
      )
      .option(
        '--aid <name>',
        'name of an artifact, in the order of the files; may be repeated',
        collect,
      )
      .option('--input', 'mark what is made as inputs of the model')
      .option('--set <name=value>', 'a parameter of the parser; may be repeated', collect)
      .option('--resume <id>', 'go on with an upload that was begun with the same files')
      .addOption(json())
      .action(async (files, options) =>
        (await import('../commands/upload.ts')).uploadFiles(files, options),
      ),
    "windlass upload day.csv --model ID --aid day --set 'delimiter=;'",
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
      .option('--offset <number>', 'first row', wholeNumber)
      .option(
        '--limit <number>',
        'number of rows; without --csv and --json 100 by default',
        positiveNumber,
      )
      .option('--csv', 'print CSV, whose lines end with LF')
      .addOption(json())
      .action(async (model, table, options) =>
        (await import('../commands/rows.ts')).printRows(model, table, options),
      ),
    'windlass rows MODEL day --sort=-temperature --filter sky:eq:rain --csv',
  );
}

function addProjects(program: Command): void {
  const load = () => import('../commands/projects.ts');
  const projects = program.command('project').description('projects, which hold models');
  withExample(
    projects
      .command('list')
      .description('list the projects that you are in')
      .addOption(json())
      .action(async options => (await load()).listProjects(options)),
    'windlass project list',
  );
  withExample(
    projects
      .command('create')
      .description('create a project, and print its id')
      .argument('<name>')
      .addOption(json())
      .action(async (name, options) => (await load()).createProject(name, options)),
    'windlass project create Weather',
  );
  const models = program.command('model').description('models, which hold tables and files');
  withExample(
    models
      .command('list')
      .description('list the models of a project')
      .argument('<project>')
      .addOption(json())
      .action(async (project, options) => (await load()).listModels(project, options)),
    'windlass model list PROJECT',
  );
  withExample(
    models
      .command('show')
      .description('list what a model holds: tables, arrays, files and parameters')
      .argument('<model>')
      .addOption(json())
      .action(async (model, options) => (await load()).listArtifacts(model, options)),
    'windlass model show MODEL',
  );
  withExample(
    models
      .command('create')
      .description('create a model, and print its id')
      .argument('<project>')
      .argument('<name>')
      .option('--type <type>', 'type of the model, a word of your own', 'table')
      .addOption(json())
      .action(async (project, name, options) => (await load()).createModel(project, name, options)),
    "windlass model create PROJECT 'A day'",
  );
}
