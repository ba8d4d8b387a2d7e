import { type Command, Option } from 'commander';
import { json, passwordStdin, withExample } from '../../options.ts';

export function addAccountCommands(program: Command): void {
  withExample(
    program
      .command('login')
      .description('log in to a service, and keep a token for it')
      .argument('<url>', 'where the service is')
      .option('--user <name>', 'your name there')
      .addOption(passwordStdin())
      .option('--token-stdin', 'keep the token on standard input')
      .addOption(json())
      .action(async (url, options) => (await import('../commands/login.ts')).logIn(url, options)),
    'windlass login https://windlass.example.org',
  );
  withExample(
    program
      .command('logout')
      .description('revoke the token that login made, and forget it')
      .option('--local', 'forget it here alone, without a password')
      .addOption(passwordStdin())
      .addOption(json())
      .action(async options => (await import('../commands/login.ts')).logOut(options)),
    'windlass logout',
  );
  const tokens = program.command('token').description('your tokens, for programs');
  const load = () => import('../commands/tokens.ts');
  withExample(
    tokens
      .command('list')
      .description('list your tokens')
      .addOption(json())
      .action(async options => (await load()).listTokens(options)),
    'windlass token list',
  );
  withExample(
    tokens
      .command('create')
      .description('create a token, and print it')
      .argument('<name>', 'what the token is for')
      .addOption(
        new Option('--scope <scope>', 'what the token may do')
          .choices(['read', 'write'])
          .default('write'),
      )
      .option('--expires <time>', 'when the token expires, such as 2030-01-01T00:00:00Z')
      .addOption(passwordStdin())
      .addOption(json())
      .action(async (name, options) => (await load()).createToken(name, options)),
    'windlass token create notebook --scope read',
  );
  withExample(
    tokens
      .command('delete')
      .description('revoke a token')
      .argument('<id>')
      .addOption(passwordStdin())
      .addOption(json())
      .action(async (id, options) => (await load()).deleteToken(id, options)),
    'windlass token delete ID',
  );
}
