import { spawn } from 'node:child_process';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ssh2 from 'ssh2';
import type { SshHost } from '../servers/ssh-host.ts';

/** Runs commands with this machine's `ssh`: the baseline of `npm run bench:remote`. */
export class OpenSsh {
  readonly #host: SshHost;
  readonly #arguments: string[];
  readonly #control: string;

  constructor(host: SshHost, directory: string) {
    this.#host = host;
    this.#control = join(directory, `control-${host.port}`);
    const key = join(directory, `key-${host.port}`);
    const known = join(directory, `known-${host.port}`);
    writeFileSync(key, `${host.privateKey}\n`, { mode: 0o600 });
    writeFileSync(known, `[127.0.0.1]:${host.port} ${host.hostKey}\n`);
    this.#arguments = [
      '-F',
      'none',
      '-o',
      'BatchMode=yes',
      '-o',
      'IdentitiesOnly=yes',
      '-o',
      `UserKnownHostsFile=${known}`,
      '-i',
      key,
      '-p',
      String(host.port),
      `${host.username}@127.0.0.1`,
    ];
  }

  /** Runs a command over a new connection. */
  run(command: string): Promise<string> {
    return run(['-o', 'ControlPath=none', ...this.#arguments, command]);
  }

  /** Runs a command over the connection that openControl() opened. */
  runOverControl(command: string): Promise<string> {
    return run(['-o', `ControlPath=${this.#control}`, ...this.#arguments, command]);
  }

  /** Writes a command's output into a file, over the connection that openControl() opened, as a shell's `>` does. */
  async saveOverControl(command: string, file: string): Promise<void> {
    const target = openSync(file, 'w');
    try {
      await run(['-o', `ControlPath=${this.#control}`, ...this.#arguments, command], target);
    } finally {
      closeSync(target);
    }
  }

  async openControl(): Promise<void> {
    const options = ['-o', `ControlPath=${this.#control}`, '-o', 'ControlPersist=yes'];
    await run([...options, '-M', '-f', '-N', ...this.#arguments]);
  }

  async closeControl(): Promise<void> {
    await run(['-o', `ControlPath=${this.#control}`, '-O', 'exit', ...this.#arguments]);
  }

  /** Runs a command with plain ssh2 and passes its channel to `take`. */
  async read<T>(command: string, take: (channel: ssh2.ClientChannel) => Promise<T>): Promise<T> {
    const { port, username, privateKey } = this.#host;
    const client = new ssh2.Client();
    await new Promise<void>((resolve, reject) => {
      client.once('ready', resolve).once('error', reject);
      client.connect({ host: '127.0.0.1', port, username, privateKey });
    });
    try {
      const channel = await new Promise<ssh2.ClientChannel>((resolve, reject) => {
        client.exec(command, (error, opened) => (error ? reject(error) : resolve(opened)));
      });
      return await take(channel);
    } finally {
      client.end();
    }
  }
}

/** Returns what was printed, unless `target`, an open file, takes it. */
function run(args: string[], target: number | 'pipe' = 'pipe'): Promise<string> {
  return new Promise((resolve, reject) => {
    // The background master keeps the inherited output open: wait for the exit of this process only.
    const child = spawn('ssh', args, { stdio: ['ignore', target, 'ignore'] });
    let printed = '';
    child.stdout?.setEncoding('utf8').on('data', text => {
      printed += text;
    });
    child.once('error', reject);
    const event = args.includes('-M') ? 'exit' : 'close';
    child.once(event, code => {
      child.stdout?.destroy();
      if (code === 0) resolve(printed);
      else reject(new Error(`ssh ${args.at(-1)} ended with ${code}`));
    });
  });
}
