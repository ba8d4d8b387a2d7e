import { Transform, type TransformCallback } from 'node:stream';
import { explainS3 } from './s3-errors.ts';

/** An object's bytes on their way to a reader; an error on the way is one of ours. */
export class S3Body extends Transform {
  constructor() {
    super({ highWaterMark: 1 << 18 });
  }

  override _transform(piece: Buffer, _encoding: string, done: TransformCallback): void {
    done(null, piece);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    done(error && (explainS3(error) as Error));
  }
}
