import { spawn } from 'node:child_process';
import type { ExecChannel, RemoteExec } from '../../../workers/host-agent/exec-channel.ts';

export interface LocalAccount {
  home: string;
  /** The account's shell; every command is read by `shell -c`, as sshd does. */
  shell: string;
  /** The whole of the environment but HOME and SHELL. */
  env: Record<string, string>;
  /** Who runs the commands, where this process is root. Default: this user. */
  uid?: number;
}

/** This machine as a host, for tests: each channel is a child process in a session of its own, as under sshd. */
export class LocalExec implements RemoteExec {
  readonly account: LocalAccount;
  /** Process ids of the channels' first processes, in the order of exec. */
  readonly pids: number[] = [];
  readonly commands: string[] = [];

  constructor(account: LocalAccount) {
    this.account = account;
  }

  async exec(command: string, signal?: AbortSignal): Promise<ExecChannel> {
    signal?.throwIfAborted();
    const { home, shell, env, uid } = this.account;
    const child = spawn(shell, ['-c', command], {
      cwd: home,
      env: { ...env, HOME: home, SHELL: shell },
      detached: true,
      stdio: 'pipe',
      ...(uid === undefined ? {} : { uid, gid: uid }),
    });
    this.commands.push(command);
    this.pids.push(child.pid ?? 0);
    const closed = new Promise<{ code: number | null; signal: string | null }>(resolve => {
      child.on('error', () => resolve({ code: null, signal: null }));
      child.on('close', (code, name) => resolve({ code, signal: name }));
    });
    return {
      stdin: child.stdin,
      stdout: child.stdout,
      stderr: child.stderr,
      closed,
      destroy: () => {
        child.stdin.destroy();
        child.stdout.destroy();
        child.stderr.destroy();
      },
    };
  }
}
