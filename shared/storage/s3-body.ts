import { Transform, type TransformCallback } from 'node:stream';
import { translateS3Error } from './s3-errors.ts';

/** An object's bytes for a reader; translates the connection's errors. */
export class S3Body extends Transform {
  constructor() {
    super({ highWaterMark: 1 << 18 });
  }

  override _transform(piece: Buffer, _encoding: string, done: TransformCallback): void {
    done(null, piece);
  }

  /** Not in _destroy(): a reader that comes after the error finds the one given here. */
  override destroy(error?: Error): this {
    return super.destroy(error && (translateS3Error(error) as Error));
  }
}
