import { contentPolicy } from './content-policy.ts';

/** What every answer tells a browser; pages and files set policies of their own. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': contentPolicy(),
  // Not `no-referrer`: with it a form of our own page sends `Origin: null` (Fetch, 3.2), and no Referer.
  'Referrer-Policy': 'same-origin',
};
