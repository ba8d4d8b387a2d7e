/** A frame that is about to be used, and its decoding, if it is decoded. */
interface BegunFrame {
  decoding?: Promise<unknown>;
}

/**
 * The frames in order, decoded. While one is decoded the next are read, so that up to `atOnce()` are in memory; a frame
 * that is not decoded is there alone. `begin` must not throw; what a decoding throws ends the frames at its turn.
 */
export async function* decodeAhead<Frame, Begun extends BegunFrame>(
  frames: AsyncIterator<Frame>,
  begin: (frame: Frame) => Begun,
  atOnce: () => number,
): AsyncGenerator<Begun> {
  const begun: Begun[] = [];
  try {
    for (let isOver = false; ; ) {
      while (!isOver && begun.length < (begun.at(-1)?.decoding ? atOnce() : 1)) {
        const { done, value } = await frames.next();
        if (done) isOver = true;
        else begun.push(begin(value));
        begun.at(-1)?.decoding?.catch(() => {});
      }
      const next = begun.shift();
      if (!next) return;
      await next.decoding;
      yield next;
    }
  } finally {
    await frames.return?.();
  }
}
