export const OUTPUT_STREAMS = ['stdout', 'stderr'] as const;
export type OutputStream = (typeof OUTPUT_STREAMS)[number];
export const streamNumber = (stream: OutputStream) => (stream === 'stdout' ? 1 : 2);
export const streamName = (number: number): OutputStream => (number === 1 ? 'stdout' : 'stderr');

export interface OutputPiece {
  stream: OutputStream;
  /** Offset of the first byte in its stream. */
  offset: number;
  bytes: Buffer;
  /** When the first of them was stored, to the second; undefined where 0.1.0 stored them. */
  time?: Date;
}

/** A position in both streams. */
export type OutputOffsets = Record<OutputStream, number>;

export interface OutputRange {
  from: OutputOffsets;
  /** Offsets that are stored, by the job's row. */
  until: OutputOffsets;
  signal?: AbortSignal;
}
