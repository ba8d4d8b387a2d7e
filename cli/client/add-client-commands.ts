import { type Command, InvalidArgumentError, Option } from 'commander';

/** Commands of a user, who may be anywhere: they call the service that `windlass login` names. */
export function addClientCommands(program: Command): void {
  program.commandsGroup('Your login:');
  addLogin(program);
  program.commandsGroup('Work on hosts:');
  addRun(program);
  program.commandsGroup('Jobs:');
  addJobs(program);
}

const json = () => new Option('--json', 'print JSON');
const passwordStdin = () => new Option('--password-stdin', 'read the password from standard input');
const example = (command: Command, ...lines: string[]) =>
  command.addHelpText('after', ['\nExample:', ...lines].join('\n  '));
const collect = (value: string, before: string[] = []) => [...before, value];

function addLogin(program: Command): void {
  example(
    program
      .command('login')
      .description('log in to a service, and keep a token for it')
      .argument('<url>', 'where the service is')
      .option('--user <name>', 'your name there')
      .addOption(passwordStdin())
      .option('--token-stdin', 'keep the token on standard input')
      .action(async (url, options) => (await import('./login.ts')).logIn(url, options)),
    'windlass login https://windlass.example.org',
  );
  example(
    program
      .command('logout')
      .description('end that token, and forget it')
      .addOption(passwordStdin())
      .action(async options => (await import('./login.ts')).logOut(options)),
    'windlass logout',
  );
}

function addRun(program: Command): void {
  example(
    program
      .command('run')
      .description('run a command on a host; its output and exit status are those of this one')
      .argument('<host>', 'the name of a host')
      .argument('<command...>', 'as the shell there is to have it')
      .option('--user <name>', 'the account on the host')
      .option('--key <file>', 'a private key for it; else its password is asked for')
      .option('-d, --detach', 'print the id of the job and leave')
      .option('--cwd <folder>', 'where it runs, on the host')
      .option('--env <name=value>', 'for its environment; may be repeated', collect)
      .option('--timeout <seconds>', 'its time limit', wholeNumber)
      .option('--name <name>', 'a name for the job')
      .option('-n, --no-stdin', 'do not read standard input')
      .addOption(json())
      .action(async (host, words, options) => (await import('./run.ts')).run(host, words, options)),
    "windlass run lab -- 'cd study && ./simulate --steps 100'",
    'windlass run lab --user alice --key ~/.ssh/id_ed25519 -- uname -a',
    'windlass run lab -d --timeout 3600 -- ./simulate',
  );
}

function addJobs(program: Command): void {
  example(
    program
      .command('jobs')
      .description('list your jobs, the latest first')
      .option('--state <state>', 'only those in this state; may be repeated', collect)
      .option('--kind <kind>', 'only those of this kind; may be repeated', collect)
      .option('--host <name>', 'only those on this host')
      .option('--name <name>', 'only those with this name')
      .option('--owner <name>', "another user's, or * for all: for administrators")
      .option('--limit <number>', 'how many', wholeNumber, 20)
      .option('--watch', 'again every two seconds')
      .addOption(json())
      .action(async options => (await import('./jobs.ts')).listJobs(options)),
    'windlass jobs --state running --watch',
  );
  example(
    program
      .command('logs')
      .description('print the output of a job')
      .argument('<job>')
      .option('-f, --follow', 'go on until it ends')
      .addOption(json())
      .action(async (job, options) => (await import('./logs.ts')).showLogs(job, options)),
    'windlass logs -f JOB',
  );
  example(
    program
      .command('wait')
      .description("wait for a job's end, and end like it")
      .argument('<job>')
      .addOption(json())
      .action(async (job, options) => (await import('./end-jobs.ts')).waitForJob(job, options)),
    'windlass wait JOB && echo done',
  );
  example(
    program
      .command('cancel')
      .description('end jobs')
      .argument('<job...>')
      .action(async jobs => (await import('./end-jobs.ts')).cancelJobs(jobs)),
    'windlass cancel JOB',
  );
}

function wholeNumber(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.');
  return Number(text);
}
