import { extensionOf } from '../service/paths.ts';

/** What every browser decodes by itself. */
const SHOWN: Record<string, string> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  avif: 'image/avif',
  bmp: 'image/bmp',
  svg: 'image/svg+xml',
};

export const imageType = (name: string): string | undefined => SHOWN[extensionOf(name)];

/** What videos are made of: the service tells their kinds by their bytes, people by these. */
export const isFrame = (name: string): boolean =>
  /^(png|jpe?g|tiff?|webp|gif|bmp|exr|ppm|pgm)$/.test(extensionOf(name));
