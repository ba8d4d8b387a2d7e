import { type Command, Option } from 'commander';
import { RELEASE } from '../../../shared/process/release.ts';
import { collect, json, passwordStdin, wholeNumber, withExample } from '../../options.ts';
import { printRecord } from '../../output/print-records.ts';

/** What server administrators do, `doctor` and `version`. */
export function addAdministration(program: Command): void {
  addUsers(program.command('user').description('users of the service'));
  addHosts(program.command('host').description('hosts that commands may run on'));
  addWorkers(program.command('worker').description('processes that do the work'));
  withExample(
    program
      .command('doctor')
      .description('say what is wrong, and the next step')
      .addOption(json())
      .action(async options => (await import('../commands/doctor.ts')).examine(options)),
    'windlass doctor',
  );
  withExample(
    program
      .command('version')
      .description('print the release of this program')
      .addOption(json())
      .action(options => printRecord({ version: RELEASE }, { sentence: RELEASE, ...options })),
    'windlass version',
  );
}

function addUsers(users: Command): void {
  const load = () => import('../commands/users.ts');
  withExample(
    users
      .command('list')
      .description('list users')
      .addOption(json())
      .action(async options => (await load()).listUsers(options)),
    'windlass user list',
  );
  withExample(
    users
      .command('add')
      .description('add a user, whose password is asked for')
      .argument('<name>')
      .option('--administrator', 'the user administers the server')
      .addOption(passwordStdin())
      .addOption(json())
      .action(async (name, options) => (await load()).addUser(name, options)),
    'windlass user add alice',
  );
  withExample(
    users
      .command('password')
      .description('change your password, or reset that of another user')
      .argument('[name]')
      .addOption(passwordStdin())
      .addOption(json())
      .action(async (name, options) => (await load()).changePassword(name, options)),
    'windlass user password',
  );
  for (const [verb, does, disabled] of [
    ['disable', 'end all logins of a user, and refuse new ones', true],
    ['enable', 'let a disabled user log in again', false],
  ] as const)
    withExample(
      users
        .command(verb)
        .description(does)
        .argument('<name>')
        .addOption(passwordStdin())
        .addOption(json())
        .action(async (name, options) => (await load()).setDisabled(name, disabled, options)),
      `windlass user ${verb} alice`,
    );
  withExample(
    users
      .command('remove')
      .description(
        'remove a user, with the projects that nobody else is in; asks where there are projects that nobody else may change',
      )
      .argument('<name>')
      .option(
        '--delete-projects',
        'do not ask: delete these projects, or leave them to their readers',
      )
      .addOption(
        new Option(
          '--give-projects-to <name>',
          'make this user the administrator of these projects instead',
        ).conflicts('deleteProjects'),
      )
      .addOption(passwordStdin())
      .addOption(json())
      .action(async (name, options) => (await load()).removeUser(name, options)),
    'windlass user remove alice',
    'windlass user remove alice --give-projects-to bob',
  );
}

function addHosts(hosts: Command): void {
  const load = () => import('../commands/hosts.ts');
  withExample(
    hosts
      .command('list')
      .description('list hosts')
      .addOption(json())
      .action(async options => (await load()).listHosts(options)),
    'windlass host list',
  );
  withExample(
    hosts
      .command('add')
      .description('add a host, with its keys')
      .argument('<name>')
      .option('--address <address>', 'the address of the host; the name by default')
      .option('--port <number>', 'the port of its SSH server; 22 by default', wholeNumber)
      .option(
        '--key <key>',
        'a key of the host, or its authority as @cert-authority HOSTS KEY; may be repeated',
        collect,
      )
      .option('--trust', 'trust the keys that the host shows now')
      .option('--private', 'allow a private address, such as 127.0.0.1 or 10.0.0.1')
      .option('--jump <host>', 'the host that this one is reached through')
      .option('--no-agent', 'run commands without the agent')
      .addOption(passwordStdin())
      .addOption(json())
      .action(async (name, options) => (await load()).addHost(name, options)),
    'windlass host add lab --address lab.example.org --trust',
  );
  withExample(
    hosts
      .command('trust')
      .description('pin the keys that a host shows now; its sessions end if these are others')
      .argument('<name>')
      .addOption(passwordStdin())
      .addOption(json())
      .action(async (name, options) => (await load()).trustShownKeys(name, options)),
    'windlass host trust lab',
  );
  withExample(
    hosts
      .command('remove')
      .description('remove a host')
      .argument('<name>')
      .addOption(passwordStdin())
      .addOption(json())
      .action(async (name, options) => (await load()).removeHost(name, options)),
    'windlass host remove lab',
  );
}

function addWorkers(workers: Command): void {
  const load = () => import('../commands/workers.ts');
  withExample(
    workers
      .command('list')
      .description('list workers, and what they do')
      .addOption(json())
      .action(async options => (await load()).listWorkers(options)),
    'windlass worker list',
  );
  withExample(
    workers
      .command('drain')
      .description('let a worker finish what it has, and take no more work')
      .argument('<id>')
      .option('--wait', 'end when it has no jobs left')
      .option('--timeout <seconds>', 'wait at most so long, then fail', wholeNumber)
      .addOption(passwordStdin())
      .addOption(json())
      .action(async (id, options) => (await load()).setDraining(id, true, options)),
    'windlass worker drain ID --wait --timeout 600',
  );
  withExample(
    workers
      .command('resume')
      .description('let a drained worker take work again')
      .argument('<id>')
      .addOption(passwordStdin())
      .addOption(json())
      .action(async (id, options) => (await load()).setDraining(id, false, options)),
    'windlass worker resume ID',
  );
}
