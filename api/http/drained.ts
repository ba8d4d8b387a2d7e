import type { Writable } from 'node:stream';

/** Waits until a writer that is full can take more; false when it was closed instead. */
export function drained(writer: Writable): Promise<boolean> {
  return new Promise(resolve => {
    if (writer.destroyed) return resolve(false);
    const settle = (open: boolean) => {
      writer.off('drain', onDrain);
      writer.off('close', onClose);
      resolve(open);
    };
    const onDrain = () => settle(true);
    const onClose = () => settle(false);
    writer.once('drain', onDrain).once('close', onClose);
  });
}
