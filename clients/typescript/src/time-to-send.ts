/** What a link is taken to bring at least, in bytes a ms. */
const SLOWEST = 16;

/** How long so many bytes may be under way, in ms. */
export const timeToSend = (size: number): number => size / SLOWEST;
