/** A letter's columns and rows: seven rows for the letter, one below the line. */
const COLUMNS = 5;
const ROWS = 8;
/** A letter with a column before it, and a row above and below. */
export const CELL = { width: COLUMNS + 1, height: ROWS + 2 };

/** ffmpeg's `gray`; no byte is 0, so that awk can hold them in a string. */
const INK = 0xff;
export const PAPER = 0x01;

/** Space to tilde: a byte per column, with the top row in the lowest bit. */
const LETTERS = `
0000000000 00005f0000 0007000700 147f147f14 242a7f2a12 2313086462 3649562050 0008070300
001c224100 0041221c00 2a1c7f1c2a 08083e0808 0080703000 0808080808 0000606000 2010080402
3e5149453e 00427f4000 7249494946 2141494d33 1814127f10 2745454539 3c4a494931 4121110907
3649494936 464949291e 0000140000 0040340000 0008142241 1414141414 0041221408 0201590906
3e415d594e 7c1211127c 7f49494936 3e41414122 7f4141413e 7f49494941 7f09090901 3e41415173
7f0808087f 00417f4100 2040413f01 7f08142241 7f40404040 7f021c027f 7f0408107f 3e4141413e
7f09090906 3e4151215e 7f09192946 2649494932 03017f0103 3f4040403f 1f2040201f 3f4038403f
6314081463 0304780403 6159494d43 007f414141 0204081020 004141417f 0402010204 4040404040
0003070800 2054547840 7f28444438 3844444428 384444287f 3854545418 00087e0902 18a4a49c78
7f08040478 00447d4000 2040403d00 7f10284400 00417f4000 7c04780478 7c08040478 3844444438
fc18242418 18242418fc 7c08040408 4854545424 04043f4424 3c4040207c 1c2040201c 3c4030403c
4428102844 4c9090907c 4464544c44 0008364100 0000770000 0041360800 0201020402`
  .trim()
  .split(/\s+/)
  .map(hex => Buffer.from(hex, 'hex'));

/** All characters that can be drawn: those of ASCII that are seen, and the space. */
export const CHARACTERS = LETTERS.map((_, at) => String.fromCharCode(0x20 + at));

/**
 * A character's pixels, column by column from the top: concatenated, characters are the picture of the text,
 * transposed.
 */
export function drawCharacter(character: string): Buffer {
  const columns = [0, ...(LETTERS[character.charCodeAt(0) - 0x20] ?? [])];
  const pixels = Buffer.alloc(CELL.width * CELL.height, PAPER);
  for (const [x, bits] of columns.entries()) {
    for (let y = 0; y < ROWS; y++) if ((bits >> y) & 1) pixels[x * CELL.height + y + 1] = INK;
  }
  return pixels;
}
