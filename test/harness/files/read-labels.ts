import { execFileSync } from 'node:child_process';
import { probeVideo } from '../../../demo/probe-video.ts';
import { CELL, CHARACTERS, drawCharacter } from '../../../workers/video/label-font.ts';

/** Where each character has ink. */
const DRAWN = new Map(
  Array.from(CHARACTERS, character => [
    character,
    Array.from(drawCharacter(character), pixel => pixel > 128),
  ]),
);

/** Reads the text in the upper left corner of each frame of a video, up to a number of letters. */
export async function readLabels(
  file: string,
  { length, scale = 1 }: { length: number; scale?: number },
): Promise<string[]> {
  const { width, height, frames } = await probeVideo(file);
  const words = `-loglevel error -i ${file} -pix_fmt gray -f rawvideo -`.split(' ');
  const pixels = execFileSync('ffmpeg', words, { maxBuffer: 2 ** 30 });
  const isInk = (frame: number, x: number, y: number) => {
    const [column, row] = [x, y].map(each => Math.floor((each + 0.5) * scale));
    return (pixels[(frame * height + (row ?? 0)) * width + (column ?? 0)] ?? 0) > 128;
  };
  return Array.from({ length: frames }, (_, frame) => {
    const letters = Array.from({ length }, (_, at) =>
      nearest((x, y) => isInk(frame, at * CELL.width + x, y)),
    );
    return letters.join('');
  });
}

/** The character that has the fewest other pixels. */
function nearest(isInk: (x: number, y: number) => boolean): string {
  // Once for all characters: columns one after another, as they are drawn.
  const ink = Array.from({ length: CELL.width * CELL.height }, (_, at) =>
    isInk(Math.floor(at / CELL.height), at % CELL.height),
  );
  let best = { character: '', others: Number.POSITIVE_INFINITY };
  for (const [character, pixels] of DRAWN) {
    let others = 0;
    for (let at = 0; at < ink.length; at++) if (ink[at] !== pixels[at]) others++;
    if (others < best.others) best = { character, others };
  }
  return best.character;
}
