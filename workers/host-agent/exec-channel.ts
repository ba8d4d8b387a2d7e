import type { Readable, Writable } from 'node:stream';

/** A channel that runs one command on the host: ssh2's exec or, in tests, a child process. */
export interface ExecChannel {
  stdin: Writable;
  stdout: Readable;
  stderr: Readable;
  /** Resolves when the command has ended or the channel has closed; never rejects. */
  closed: Promise<{ code: number | null; signal: string | null }>;
  destroy(): void;
}

export interface RemoteExec {
  /** Whether the connection is closed, where there is one: its channels then end without telling how. */
  readonly isClosed?: boolean;
  exec(command: string, signal?: AbortSignal): Promise<ExecChannel>;
}
