import { once } from 'node:events';
import { finished } from 'node:stream/promises';
import { expect, test } from 'vitest';
import { WindlassError } from '../../shared/errors/errors.ts';
import { PartMeter } from '../../shared/uploads/part-meter.ts';
import { AppendSink } from './append-sink.ts';

const PART = 64 << 20;
const cut = () => new WindlassError('bad_request', { detail: 'cut', hint: '' });

/** A sink whose parts are stored when `pass` is called; their sizes. */
function makeSink({ room }: { room: number }) {
  const stored: number[] = [];
  let pass = () => {};
  const passed = new Promise<void>(resolve => {
    pass = resolve;
  });
  let begun = () => {};
  const full = new Promise<void>(resolve => {
    begun = resolve;
  });
  const sink = new AppendSink({
    room,
    partBytes: PART,
    createMeter: () => new PartMeter(),
    store: async meter => {
      await once(meter.resume(), 'end');
      begun();
      await passed;
      stored.push(meter.size);
    },
  });
  return { sink, stored, pass, full };
}

for (const [name, beyond] of [
  ['a full part is being stored', 100],
  ['the last part is being stored', 0],
] as const) {
  test(`a body that is cut while ${name} ends when that is visible`, async () => {
    const { sink, stored, pass, full } = makeSink({ room: PART + beyond });
    const ended = finished(sink).catch((error: Error) => error);
    sink.write(Buffer.alloc(PART + beyond));
    if (beyond === 0) sink.end();
    await full;
    sink.destroy(cut());
    setImmediate(pass);
    expect(await ended).toMatchObject({ code: 'bad_request' });
    // No byte that came is lost, and no part stays open.
    expect(stored).toEqual(beyond === 0 ? [PART] : [PART, beyond]);
  });
}
