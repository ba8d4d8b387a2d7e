import type { SpriteTiles } from '../../../shared/jobs/payloads/video.ts';

/** WebVTT with media fragments (W3C Media Fragments 1.0), as video players take it for scrubbing. */
export function writeCues({ count, columns, width, height, every, duration }: SpriteTiles): string {
  const cues = Array.from({ length: count }, (_, i) => {
    const from = i * every;
    const to = i + 1 < count ? from + every : Math.max(duration, from + 0.001);
    const place = [(i % columns) * width, Math.floor(i / columns) * height, width, height];
    return `${timestamp(from)} --> ${timestamp(to)}\nsprite#xywh=${place.join(',')}\n`;
  });
  return `WEBVTT\n\n${cues.join('\n')}`;
}

function timestamp(seconds: number): string {
  const ms = Math.round(seconds * 1000);
  const two = (value: number) => String(Math.floor(value)).padStart(2, '0');
  const rest = String(ms % 1000).padStart(3, '0');
  return `${two(ms / 3_600_000)}:${two((ms / 60_000) % 60)}:${two((ms / 1000) % 60)}.${rest}`;
}
