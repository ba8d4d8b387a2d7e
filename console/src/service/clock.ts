/** How far the service's clock is ahead of this machine's, in ms. Its times are told against its own. */
let ahead = 0;
/** What the service's clock showed last. */
let latest = 0;
/** Since when answers have agreed on another time that is earlier than the latest, and how far it is ahead. */
let earlier: { since: number; ahead: number } | undefined;
/** `Date` has whole seconds, and answers take their time. */
const UNSURE_MS = 5_000;
/** So long answers agree before an earlier time is believed: those that the browser has kept do not. */
const AGREED_MS = 20_000;

/** Learns what the service's clock shows from an answer. */
export function readClock({ headers }: Response): void {
  const shown = Date.parse(headers.get('Date') ?? '');
  if (Number.isNaN(shown)) return;
  const found = shown - Date.now();
  if (shown < latest && !isAgreed(found)) return;
  earlier = undefined;
  latest = shown;
  if (Math.abs(found - ahead) > UNSURE_MS) ahead = Math.abs(found) > UNSURE_MS ? found : 0;
}

/** Whether the latest time was a mistake: all answers since have shown an earlier one that goes on as it should. */
function isAgreed(found: number): boolean {
  const now = Date.now();
  if (!earlier || Math.abs(found - earlier.ahead) > UNSURE_MS)
    earlier = { since: now, ahead: found };
  return now - earlier.since >= AGREED_MS;
}

/** The present time by the service's clock, in ms: that of a laptop may be hours off. */
export const serviceNow = (): number => Date.now() + ahead;
