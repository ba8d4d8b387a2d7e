import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { findProgram } from '../../../scripts/programs.ts';

const FILE = fileURLToPath(new URL('../../../docker-compose.yml', import.meta.url));

export interface ComposeService {
  image: string;
  command: string[];
  environment: Record<string, string>;
  networks: string[];
}

/**
 * What docker-compose makes of docker-compose.yml with these variables, or with those of a file; throws with its words
 * where it refuses.
 */
export function readCompose(
  variables: Record<string, string> | { envFile: string },
): Record<string, ComposeService> {
  const given = 'envFile' in variables ? ['--env-file', variables.envFile] : [];
  const environment = 'envFile' in variables ? {} : variables;
  const { status, stdout, stderr } = spawnSync(
    findProgram('docker-compose') ?? '',
    ['--file', FILE, ...given, 'config'],
    // Not the checkout, whose .env is the developer's.
    { cwd: '/', env: { PATH: process.env.PATH, ...environment }, encoding: 'utf8' },
  );
  if (status !== 0) throw new Error(stderr);
  const services: Record<string, ComposeService> = {};
  let section = '';
  let service: ComposeService | undefined;
  let key = '';
  // It prints maps and lists of plain words alone, each level two spaces further in.
  for (const line of stdout.split('\n')) {
    const [, spaces = '', text = ''] = /^( *)(.*)$/.exec(line) ?? [];
    const [name = '', value = ''] = text.split(/: ?(.*)/s);
    if (spaces.length === 0) section = name;
    if (section !== 'services') continue;
    if (spaces.length === 2) {
      service = { image: '', command: [], environment: {}, networks: [] };
      services[name] = service;
    } else if (spaces.length === 4 && text.startsWith('- ')) {
      if (key === 'command') service?.command.push(unquote(text.slice(2)));
    } else if (spaces.length === 4) {
      key = name;
      if (key === 'image' && service) service.image = value;
    } else if (spaces.length === 6 && service) {
      if (key === 'environment') service.environment[name] = unquote(value);
      if (key === 'networks') service.networks.push(name);
    }
  }
  return services;
}

const unquote = (text: string) => text.replace(/^'(.*)'$/s, '$1').replace(/^"(.*)"$/s, '$1');
