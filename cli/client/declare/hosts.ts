import { type Command, Option } from 'commander';
import {
  account,
  collect,
  decimalNumber,
  environment,
  json,
  jumpKey,
  jumpUser,
  key,
  wholeNumber,
  withExample,
} from '../../options.ts';
import { endOptionsAtCommand } from '../../options-end-at-command.ts';

export function addHostCommands(program: Command): void {
  addRun(program);
  addBatch(program);
  addVideo(program);
  addCopy(program);
  addSessions(program);
}

function addRun(program: Command): void {
  withExample(
    endOptionsAtCommand(program.command('run'))
      .description('run a command on a host; its output and exit status are those of this one')
      .argument('<host>', 'the name of a host')
      .argument(
        '<command...>',
        'the command with its options, as the shell of the account reads it',
      )
      .addOption(account())
      .addOption(key())
      .addOption(jumpUser())
      .addOption(jumpKey())
      .option('-d, --detach', 'print the id of the job and leave')
      .option('--cwd <folder>', 'the working folder on the host')
      .addOption(environment())
      .addOption(
        new Option(
          '--startup <when>',
          "the account's start-up files are read once a connection, or by each command as over ssh",
        ).choices(['once', 'each'] as const),
      )
      .option('--timeout <seconds>', 'time limit of the command', wholeNumber)
      .option('--name <name>', 'a name for the job')
      .option('-n, --no-stdin', 'do not read standard input')
      .addOption(json())
      .action(async (host, words, options) =>
        (await import('../commands/run.ts')).run(host, words, options),
      ),
    "windlass run lab -- 'cd study && ./simulate --steps 100'",
    'windlass run lab --user alice --key ~/.ssh/id_ed25519 uname -a',
    'windlass run -d --timeout 3600 lab ./simulate --steps 100',
  );
}

function addBatch(program: Command): void {
  withExample(
    endOptionsAtCommand(program.command('batch'))
      .description(
        'submit a job to the batch system of a host, and follow it: Ctrl-C cancels it; -d leaves it',
      )
      .argument('<host>', 'the name of a host')
      .argument(
        '[command...]',
        'the command with its options, as the shell of the account reads it',
      )
      .addOption(account())
      .addOption(key())
      .addOption(jumpUser())
      .addOption(jumpKey())
      .option('--script <file>', 'a script of this machine, instead of a command')
      .option('-d, --detach', 'print the id of the job and leave')
      .option('--cwd <folder>', 'the working folder on the host')
      .addOption(environment())
      .option('--name <name>', 'a name for the job')
      .option('--nodes <number>', 'number of nodes', wholeNumber)
      .option('--tasks <number>', 'number of tasks', wholeNumber)
      .option('--cpus <number>', 'cores of each task', wholeNumber)
      .option('--memory <bytes>', 'memory of each node', wholeNumber)
      .option('--time <seconds>', 'time limit of the job', wholeNumber)
      .option('--queue <name>', 'the queue, or partition')
      .option('--account <name>', 'the account that is charged')
      .option(
        '--option <option>',
        'an option of the batch system, as it is; may be repeated',
        collect,
      )
      .addOption(json())
      .action(async (host, words, options) =>
        (await import('../commands/batch.ts')).submitBatch(host, words, options),
      ),
    'windlass batch cluster --nodes 4 --time 3600 srun ./simulate --steps 100',
    'windlass batch cluster -d --script job.sh --option=--gres=gpu:1',
  );
}

function addVideo(program: Command): void {
  withExample(
    program
      .command('video')
      .description('make a video of frames that lie on a host')
      .argument('<host>', 'the name of a host')
      .argument('<frames...>', 'paths on the host, or a pattern with * or %05d; quote it')
      .requiredOption('-o, --output <file>', 'the file to write here: .mp4 or .webm')
      .addOption(account())
      .addOption(key())
      .addOption(jumpUser())
      .addOption(jumpKey())
      .option('--fps <number>', 'frames a second', decimalNumber)
      .option('--width <pixels>', 'width in pixels', wholeNumber)
      .option('--quality <number>', 'quality from 0 to 1', decimalNumber)
      .addOption(
        new Option(
          '--label <what>',
          'what is drawn into each frame: its number or its name',
        ).choices(['frame', 'name'] as const),
      )
      .option(
        '--first <number>',
        'the first number of a pattern; with * the position from 0',
        wholeNumber,
      )
      .option('--last <number>', 'the last one, without which a pattern ends at a gap', wholeNumber)
      .option('--step <number>', 'take one in so many', wholeNumber)
      .option('--skip-bad', 'leave out frames that are missing or broken')
      .addOption(
        new Option(
          '--codec <codec>',
          'h264 or av1 in .mp4, vp9 or av1 in .webm; the first by default',
        ).choices(['h264', 'vp9', 'av1'] as const),
      )
      .option('--background <colour>', 'behind transparent pixels, such as #ffffff')
      .option('--project <id>', 'keep the video in the cache of this project too')
      .option('--cache-key <key>', 'its key there')
      .option('--name <name>', 'a name for the job')
      .addOption(json())
      .action(async (host, frames, options) =>
        (await import('../commands/video.ts')).makeVideo(host, frames, options),
      ),
    "windlass video lab -o study.mp4 --fps 30 '~/study/*.png'",
    "windlass video lab -o study.webm --last 500 --skip-bad '~/study/%05d.png'",
  );
}

function addCopy(program: Command): void {
  withExample(
    program
      .command('cp')
      .description('copy a file from a host or to one')
      .argument('<from>', 'a file here, or HOST:PATH')
      .argument('<to>', 'likewise; in a folder a file keeps its name')
      .addOption(account())
      .addOption(key())
      .addOption(jumpUser())
      .addOption(jumpKey())
      .option('--parents', 'make the folders that are missing')
      .addOption(json())
      .action(async (from, to, options) =>
        (await import('../commands/cp.ts')).copyFile(from, to, options),
      ),
    'windlass cp lab:study/result.csv .',
    'windlass cp input.dat lab:study/',
  );
}

function addSessions(program: Command): void {
  const load = () => import('../commands/sessions.ts');
  withExample(
    program
      .command('sessions')
      .description('list your logins on hosts')
      .addOption(json())
      .action(async options => (await load()).showSessions(options)),
    'windlass sessions',
  );
  withExample(
    program
      .command('close')
      .description('end sessions, and cancel their jobs')
      .argument('<session...>', 'ids of sessions')
      .addOption(json())
      .action(async (sids, options) => (await load()).closeSessions(sids, options)),
    'windlass close ID',
  );
}
