/** Pixels. */
export interface Size {
  width: number;
  height: number;
}

/** Above 4096×4096 pixels each copy of a picture takes hundreds of megabytes. */
export const isLarge = ({ width, height }: Size) => width * height > 2 ** 24;

/** Kinds that ffmpeg reads as they are. */
export type FrameKind = 'png' | 'jpeg' | 'bmp' | 'pnm' | 'exr';

/** ffmpeg's input: image files of one kind, or raw RGB of 8 bits. */
export interface Pictures extends Size {
  kind: FrameKind | 'raw';
  /** Some may be transparent: they are laid on the background. */
  alpha?: true;
  /** Colours are listed: they are looked up before anything else. */
  palette?: true;
}

/** What a frame's first bytes contain; sides in pixels. */
export type FrameInfo =
  | {
      kind: FrameKind;
      width: number;
      height: number;
      /** Pixels may be transparent. */
      alpha?: true;
      /** Pixels are places in a list of colours. */
      palette?: true;
    }
  /** Must be decoded, which also gives its size. */
  | { kind: 'other'; format: string };

/** A parser's result for a head. `more`: the head ends before the size; retry with a longer one. */
export type ParsedHeader = FrameInfo | { problem: string; more?: true };
