import { type Command, Option } from 'commander';
import type { JobState } from '../../../clients/typescript/src/follow.ts';
import { collect, json, positiveNumber, repeatable, withExample } from '../../options.ts';

const STATES: JobState[] = ['queued', 'running', 'succeeded', 'failed', 'cancelled'];

export function addJobCommands(program: Command): void {
  withExample(
    program
      .command('jobs')
      .description('list your jobs, the latest first')
      .addOption(
        repeatable(
          new Option('--state <state>', 'only those in this state; may be repeated').choices(
            STATES,
          ),
        ),
      )
      .option('--kind <kind>', 'only those of this kind; may be repeated', collect)
      .option('--host <name>', 'only those on this host')
      .option('--name <name>', 'only those with this name')
      .option('--owner <name>', "another user's jobs, or * for all: for administrators")
      .option('--limit <number>', 'number of jobs', positiveNumber, 20)
      .option('--watch', 'list the jobs again every two seconds')
      .addOption(json())
      .action(async options => (await import('../commands/jobs.ts')).listJobs(options)),
    'windlass jobs --state running --watch',
  );
  withExample(
    program
      .command('logs')
      .description('print the output of a job')
      .argument('<job>')
      .option('-f, --follow', 'follow the output until the job ends')
      .addOption(json())
      .action(async (job, options) => (await import('../commands/logs.ts')).showLogs(job, options)),
    'windlass logs -f JOB',
  );
  const load = () => import('../commands/end-jobs.ts');
  withExample(
    program
      .command('wait')
      .description("wait for a job's end, and end like it")
      .argument('<job>')
      .addOption(json())
      .action(async (job, options) => (await load()).waitForJob(job, options)),
    'windlass wait JOB && echo done',
  );
  withExample(
    program
      .command('cancel')
      .description('cancel jobs')
      .argument('<job...>')
      .addOption(json())
      .action(async (jobs, options) => (await load()).cancelJobs(jobs, options)),
    'windlass cancel JOB',
  );
  withExample(
    program
      .command('open')
      .description('open the web console: a job, a project, or the page to run commands on')
      .argument('[id]', 'id of a job or a project')
      .addOption(json())
      .action(async (id, options) =>
        (await import('../commands/open.ts')).openConsole(id, options),
      ),
    'windlass open JOB',
  );
}
