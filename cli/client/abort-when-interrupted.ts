import { SIGNALS, STATUS } from './signal-status.ts';

export interface Abortion {
  signal: AbortSignal;
  /** To end with, once there was a signal. */
  readonly status: number | undefined;
  /** From here on a signal ends the process, as ever. */
  stop(): void;
}

/** The first signal ends the work, which may clean up; the second one ends the process. */
export function abortWhenInterrupted(): Abortion {
  const controller = new AbortController();
  let status: number | undefined;
  const stop = () => {
    for (const signal of SIGNALS) process.off(signal, onSignal);
  };
  const onSignal = (signal: NodeJS.Signals) => {
    status = STATUS[signal as keyof typeof STATUS];
    stop();
    controller.abort();
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  return {
    signal: controller.signal,
    get status() {
      return status;
    },
    stop,
  };
}
