import { type ChildProcess, execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findProgram } from '../../../scripts/programs.ts';
import {
  awaitExit,
  endChild,
  listProcesses,
  readEnvironment,
  signalProcess,
} from '../../../servers/processes.ts';
import { startServerProcess } from '../../../servers/server-process.ts';
import { makeTempDir } from '../files/temp-dir.ts';
import { startOnFreePort } from '../servers/start-on-free-port.ts';
import type { TestSshd } from './sshd.ts';

const PATH = '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin';
const run = promisify(execFile);

/** A cluster of one node, this machine, on which this user's jobs run. */
export interface TestSlurm {
  /** Has the login shells of this host find the cluster. */
  offerTo(sshd: TestSshd): void;
  /** Ends the controller as a crash does: what it has not saved is lost. */
  down(): Promise<void>;
  up(): Promise<void>;
  /** What a command of Slurm's prints. */
  ask(program: string, ...args: string[]): Promise<string>;
  stop(): Promise<void>;
}

/** Starts munged, slurmctld and slurmd on 127.0.0.1, with a configuration and a key of their own. See missingSlurm. */
export async function startSlurm(): Promise<TestSlurm> {
  const directory = makeTempDir('slurm');
  const at = (name: string) => join(directory.path, name);
  const env = { PATH, LC_ALL: 'C', SLURM_CONF: at('slurm.conf') };
  const ask = async (program: string, ...args: string[]) =>
    (await run(program, args, { env, timeout: 30_000 })).stdout;
  for (const name of ['munge', 'state', 'spool']) mkdirSync(at(name), { mode: 0o700 });
  writeFileSync(at('munge/key'), randomBytes(1024), { mode: 0o400 });
  const start = (name: string, args: string[], isReady: () => Promise<boolean>) =>
    startServerProcess({ program: programOf(name), args, env, cwd: directory.path, isReady });
  const startController = () =>
    start('slurmctld', ['-D'], async () => (await ask('scontrol', 'ping')).includes('is UP'));
  const startNode = () =>
    start('slurmd', ['-D', '-N', 'localhost'], async () =>
      /^(idle|mixed|allocated)$/m.test(await ask('sinfo', '--noheader', '--format=%T')),
    );

  const munged = await startServerProcess({
    program: programOf('munged'),
    args: [
      '--foreground',
      '--force',
      `--key-file=${at('munge/key')}`,
      `--socket=${at('munge/socket')}`,
      `--pid-file=${at('munge/pid')}`,
      `--log-file=${at('munge/log')}`,
      `--seed-file=${at('munge/seed')}`,
    ],
    env,
    isReady: async () =>
      (await run('munge', ['--no-input', `--socket=${at('munge/socket')}`], { env })).stdout !== '',
  });
  let { started: controller, port } = await startOnFreePort(async port => {
    writeFileSync(at('slurm.conf'), writeConfig(directory.path, port));
    return startController();
  });
  let { started: node } = await startOnFreePort(async nodePort => {
    writeFileSync(at('slurm.conf'), writeConfig(directory.path, port, nodePort));
    await endChild(controller, 5_000);
    controller = await startController();
    return startNode();
  });

  return {
    offerTo({ home }) {
      writeFileSync(join(home, '.bashrc'), `export SLURM_CONF=${at('slurm.conf')}\n`);
    },
    async down() {
      await kill(controller);
    },
    async up() {
      controller = await startController();
      // A controller that begins asks a node that did not answer at once again only after 100 s; a node that begins tells it.
      await kill(node);
      node = await startNode();
    },
    ask,
    async stop() {
      for (const child of [controller, node, munged]) await kill(child);
      // The parents of running jobs outlive slurmd, and their jobs do.
      for (const { pid } of listProcesses())
        if (pid !== process.pid && readEnvironment(pid).SLURM_CONF === env.SLURM_CONF)
          signalProcess(pid, 'SIGKILL');
      directory.remove();
    },
  };
}

async function kill(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  await awaitExit(child);
}

function programOf(name: string): string {
  const program = findProgram(name);
  if (program === undefined) throw new Error(`There is no ${name}; see missingPrograms().`);
  return program;
}

function writeConfig(directory: string, port: number, nodePort = 1): string {
  const user = userInfo().username;
  return [
    'ClusterName=test',
    'SlurmctldHost=localhost(127.0.0.1)',
    `SlurmctldPort=${port}`,
    'AuthType=auth/munge',
    `AuthInfo=socket=${directory}/munge/socket`,
    `SlurmUser=${user}`,
    `SlurmdUser=${user}`,
    `StateSaveLocation=${directory}/state`,
    `SlurmdSpoolDir=${directory}/spool`,
    `SlurmctldPidFile=${directory}/slurmctld.pid`,
    `SlurmdPidFile=${directory}/slurmd.pid`,
    `SlurmctldLogFile=${directory}/slurmctld.log`,
    `SlurmdLogFile=${directory}/slurmd.log`,
    'ProctrackType=proctrack/linuxproc',
    'TaskPlugin=task/none',
    'MpiDefault=none',
    'SelectType=select/cons_tres',
    'SelectTypeParameters=CR_CPU',
    // More jobs at once than this machine has cores: they wait more than they work.
    'SlurmdParameters=config_overrides',
    'SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,defer',
    'ReturnToService=2',
    'KillWait=2',
    'MessageTimeout=10',
    `NodeName=localhost NodeHostname=localhost NodeAddr=127.0.0.1 Port=${nodePort} CPUs=16 State=UNKNOWN`,
    'PartitionName=main Nodes=ALL Default=YES State=UP MaxTime=INFINITE',
    'PartitionName=closed Nodes=ALL State=DOWN',
    '',
  ].join('\n');
}
