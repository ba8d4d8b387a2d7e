/** Generated measurements of weather stations: the same ones in each run. */

/** Contain non-ASCII text, commas and quotes. */
export const STATIONS = ['Zugspitze', 'Säntis', 'Jungfraujoch', 'Sonnblick', 'Mont Ventoux'];
const SKIES = ['clear', 'overcast', '"light rain, gusts"', '"so-called ""graupel"""'];
const START = Date.UTC(2026, 5, 1);
const STEP_MS = 30_000;

export interface WeatherData {
  csv: Buffer;
  rows: number;
  /** The expected temperatures, by row; NaN for missing ones. */
  temperatures: Float64Array;
  /** Indexes into STATIONS, by row. */
  stations: Uint8Array;
}

/** Generates a CSV of at least `bytes` bytes: number, time, station, temperature, wind, sky. */
export function generateWeatherData(bytes: number): WeatherData {
  const random = makeRandom(20_260_601);
  // The sum of four random numbers is close to a normal distribution.
  const bell = () => random() + random() + random() + random() - 2;
  const pieces = ['number,time,station,temperature,wind,sky\n'];
  const temperatures: number[] = [];
  const stations: number[] = [];
  for (let size = 0; size < bytes; ) {
    const n = temperatures.length;
    const station = Math.floor(random() * STATIONS.length);
    const time = new Date(START + n * STEP_MS);
    // Days and nights give the histogram two peaks. One of 200 temperatures is missing.
    const isDay = time.getUTCHours() >= 7 && time.getUTCHours() < 19;
    const measured = Math.round(((isDay ? 16 : 4) - station + bell() * 6) * 100) / 100;
    const temperature = random() < 0.005 ? Number.NaN : measured;
    const wind = Math.round(Math.abs(bell()) * 30);
    const sky = SKIES[Math.floor(random() ** 2 * SKIES.length)];
    const shown = Number.isNaN(temperature) ? '' : temperature.toFixed(2);
    const row = `${n + 1},${time.toISOString()},${STATIONS[station]},${shown},${wind},${sky}\n`;
    pieces.push(row);
    size += row.length;
    temperatures.push(temperature);
    stations.push(station);
  }
  return {
    csv: Buffer.from(pieces.join('')),
    rows: temperatures.length,
    temperatures: Float64Array.from(temperatures),
    stations: Uint8Array.from(stations),
  };
}

/** Marsaglia's 32-bit xorshift: random numbers in [0, 1). */
function makeRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}
