import { WindlassError } from '../../../shared/errors.ts';

export interface Hello {
  /** Of the protocol. */
  version: number;
  node: string;
  /** The host's boot id, `-` if it has none: runs of another boot have ended. */
  boot: string;
  /** Identifies the folder of fences: another folder says nothing about runs started before. */
  fences: string;
  cores: number;
  /** Of the home directory's file system. */
  freeBytes: number;
  home: string;
  /** The account's own shell, an option of the next openAgent(). */
  shell: string;
}

const MAGIC = 'windlass-agent ';

/** Parses an agent's first line; throws `agent_startup_failed` with its reason if it refuses to serve. */
export function parseHello(line: string, shell: string): Hello {
  const [, version, node = '', boot = '', fences = '', cores, free, ...home] = line.split(' ');
  if (node === 'refused' || version !== '1') {
    throw toStartupError(line.slice(MAGIC.length).replace(/^\d+ refused /, ''));
  }
  if (!/^[\w.?-]{10,200}$/.test(fences))
    throw toStartupError('it cannot identify its folder of fences.');
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

/** For output of start-up files in the place of the expected line. */
export function toPrintError(printed: string): WindlassError {
  return new WindlassError('startup_files_print', {
    detail: `the account's shell writes ${JSON.stringify(printed.slice(0, 200))} before any command.`,
    hint: "Let the account's start-up files print only to a terminal.",
  });
}
