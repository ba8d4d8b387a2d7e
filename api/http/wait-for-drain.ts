import type { Writable } from 'node:stream';

/** Waits until a writer that is full can take more; false when it was closed instead, or when `ms` have passed. */
export function waitForDrain(writer: Writable, ms?: number): Promise<boolean> {
  return new Promise(resolve => {
    if (writer.destroyed) return resolve(false);
    const settle = (open: boolean) => {
      clearTimeout(timer);
      writer.off('drain', onDrain);
      writer.off('close', onClose);
      resolve(open);
    };
    const onDrain = () => settle(true);
    const onClose = () => settle(false);
    const timer = ms === undefined ? undefined : setTimeout(() => settle(false), ms);
    writer.once('drain', onDrain).once('close', onClose);
  });
}
