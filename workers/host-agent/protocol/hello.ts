import { WindlassError } from '../../../shared/errors/errors.ts';
import { NoAnswer } from './no-answer.ts';

export interface Hello {
  /** The protocol's version. */
  version: number;
  node: string;
  /** The host's boot id, `-` if it has none: runs of another boot have ended. */
  boot: string;
  /** Identifies the directory of fences: another directory says nothing about runs started before. */
  fences: string;
  cores: number;
  /** Free bytes of the file system of the home directory. */
  freeBytes: number;
  home: string;
  /** The account's own shell, an option of the next openAgent(). */
  shell: string;
}

const MAGIC = 'windlass-agent ';

/** Parses an agent's first line; throws `agent_startup_failed` or `host_unsupported` with its reason if it refuses to serve. */
export function parseHello(line: string, shell: string): Hello {
  const [, version, node = '', boot = '', fences = '', cores, free, ...home] = line.split(' ');
  if (node === 'unsupported')
    throw new WindlassError('host_unsupported', {
      detail: `the agent needs ${line.slice(MAGIC.length).replace(/^\d+ unsupported /, '')}.`,
      hint: 'Have that added on the host, or open the session with "agent": false.',
    });
  if (node === 'refused' || version !== '1') {
    throw toStartupError(line.slice(MAGIC.length).replace(/^\d+ refused /, ''));
  }
  if (!/^[\w-]{1,200}$/.test(boot))
    throw toStartupError('it cannot identify the boot of the host.');
  if (!/^[\w.?-]{10,200}$/.test(fences))
    throw toStartupError('it cannot identify its directory of fences.');
  return {
    version: Number(version),
    node,
    boot,
    fences,
    cores: Number(cores),
    freeBytes: Number(free),
    home: home.join(' '),
    shell,
  };
}

export function toStartupError(reason: string): WindlassError {
  return new WindlassError('agent_startup_failed', {
    detail: reason.trim() || 'the host printed nothing.',
    hint: 'Open the session with "agent": false.',
  });
}

/** The error of an account whose shell did not run what it was given. `said`: what it wrote instead, if anything. */
export function toUnusableError(why: string, said: string): WindlassError {
  const quoted = said.trim() ? ` It wrote ${JSON.stringify(said.trim().slice(0, 500))}.` : '';
  return new WindlassError('shell_unusable', {
    detail: `the account's shell ${why}.${quoted}`,
    hint: 'The account must be able to run any command: look for a ForceCommand, a restricted shell, and start-up files that wait for something or start another shell (exec zsh).',
  });
}

/** The cause of `remote_connection_failed` where the connection was alive and the account's shell gave no answer. */
export class ShellTimeout extends NoAnswer {
  readonly unusable: WindlassError;

  constructor(ms: number, said: string) {
    super('the shell did not answer in time');
    this.unusable = toUnusableError(`ran no command within ${ms / 1_000} s`, said);
  }
}

/** The error of start-up files that print in the place of the expected line. */
export function toPrintError(printed: string): WindlassError {
  return new WindlassError('startup_files_print', {
    detail: `the account's shell writes ${JSON.stringify(printed.slice(0, 200))} before any command.`,
    hint: "Let the account's start-up files print only to a terminal.",
  });
}
