import { Argument, type Command } from 'commander';
import { findWords } from './find-words.ts';
import { COMPLETION_SCRIPTS } from './scripts.ts';

export function addCompletion(program: Command): void {
  const shells = Object.keys(COMPLETION_SCRIPTS) as (keyof typeof COMPLETION_SCRIPTS)[];
  program
    .command('completion')
    .description('print what a shell evaluates to complete these words')
    .addArgument(new Argument('<shell>').choices(shells))
    .addHelpText(
      'after',
      '\nExample:\n  source <(windlass completion bash)\n  windlass completion fish | source',
    )
    .action((shell: keyof typeof COMPLETION_SCRIPTS) => {
      process.stdout.write(COMPLETION_SCRIPTS[shell]);
    });
  program
    .command('complete', { hidden: true })
    .argument('[words...]')
    .action(async (words: string[]) => {
      const found = await findWords(program, words, async argument =>
        argument === 'host' ? (await import('./host-names.ts')).readHostNames() : [],
      );
      process.stdout.write(found.map(word => `${word}\n`).join(''));
    });
}
