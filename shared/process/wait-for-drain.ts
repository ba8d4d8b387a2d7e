import type { Writable } from 'node:stream';

/** Waits for `drain`. Resolves to false when the writer closes first, or after `ms` milliseconds. */
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
