import { WindlassError } from '../../shared/errors.ts';

export interface Hello {
  /** The protocol's. */
  version: number;
  node: string;
  /** The host's boot id, `-` where it has none: runs of another boot have ended. */
  boot: string;
  /** Names the folder of the fences for good: another one tells nothing of what was started before. */
  fences: string;
  cores: number;
  /** Of the home directory's file system. */
  freeBytes: number;
  home: string;
  /** The account's own shell: what openAgent may be told the next time. */
  shell: string;
}

const MAGIC = 'windlass-agent ';

/** The hello of this line; throws `agent_startup_failed` where the agent says why it cannot serve. */
export function parseHello(line: string, shell: string): Hello {
  const [, version, node = '', boot = '', fences = '', cores, free, ...home] = line.split(' ');
  if (node === 'refused' || version !== '1') {
    throw explainStartup(line.slice(MAGIC.length).replace(/^\d+ refused /, ''));
  }
  if (!/^[\w.?-]{10,200}$/.test(fences)) throw explainStartup('its folder of fences has no name.');
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

export function explainStartup(reason: string): WindlassError {
  return new WindlassError('agent_startup_failed', {
    detail: reason.trim() || 'the host said nothing.',
    hint: 'Open the session with "agent": false.',
  });
}

/** What start-up files printed in the place of what was expected. */
export function explainNoise(noise: string): WindlassError {
  return new WindlassError('startup_files_print', {
    detail: `the account's shell writes ${JSON.stringify(noise.slice(0, 200))} before any command.`,
    hint: "Let the account's start-up files print only to a terminal.",
  });
}
