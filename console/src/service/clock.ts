/** How far the service's clock is ahead of this machine's, in ms. Its times are told against its own. */
let ahead = 0;
/** What the service's clock showed last. */
let latest = 0;
/** `Date` has whole seconds, and answers take their time. */
const UNSURE_MS = 5_000;

/** Learns what the service's clock shows from an answer. */
export function readClock({ headers }: Response): void {
  const shown = Date.parse(headers.get('Date') ?? '');
  // An answer that the browser has kept shows when it was made.
  if (Number.isNaN(shown) || shown < latest) return;
  latest = shown;
  const found = shown - Date.now();
  if (Math.abs(found - ahead) > UNSURE_MS) ahead = Math.abs(found) > UNSURE_MS ? found : 0;
}

/** The present time by the service's clock, in ms: that of a laptop may be hours off. */
export const serviceNow = (): number => Date.now() + ahead;
