/** Questions that a host may ask its user at once. */
export const MAX_PROMPTS = 100;
