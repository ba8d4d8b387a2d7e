import type { OutputOffsets, OutputStream } from '../../shared/jobs/output.ts';

/** Where a command's output goes. */
export interface CommandSink {
  /** Stores what is pending; returns the stored offsets, from which the run is followed. */
  stored(): OutputOffsets | Promise<OutputOffsets>;
  take(stream: OutputStream, bytes: Buffer): Promise<void>;
  /** Called at each connection with what acknowledges output to the host over it. */
  acknowledge?(ack: (stored: OutputOffsets) => void): void;
  /** Aborted, with a WindlassError as its reason, when the command must be ended for a limit. */
  limit: AbortSignal;
  /** Called with the time from which the command counts as running: before, a login or a channel may have been waited for. */
  begun?(at: Date): void;
}
