import { hostname } from 'node:os';
import type { Page } from 'playwright-core';

/** What stands there, and what is shown instead. */
export type Pin = [pattern: RegExp | string, shown: string];

const machine = hostname();

/** What another run, another hour or another machine shows differently. Ids of workers are of a machine, a process and chance. */
const PINS: Pin[] = [
  [/\b[0-9a-hjkmnp-tv-z]{26}\b/, '01kb4t6q2m8z5v7w9x3y1n0r4c'],
  [/^(just now|\d+ (seconds|minutes?) ago)$/, '2 minutes ago'],
  [/[A-Z][a-z]{2} \d{1,2}, \d{4}, \d{1,2}:\d\d:\d\d\s[AP]M/, 'Nov 20, 2026, 10:24:30 AM'],
  [/[A-Z][a-z]{2} \d{1,2}, \d{4}, \d{1,2}:\d\d\s[AP]M/, 'Nov 20, 2026, 10:24 AM'],
  [/^\d{1,2}:\d\d:\d\d\s[AP]M$/, '10:24:30 AM'],
  [/^\d\.\d s$/, '0.3 s'],
  [/-\d+-[a-z0-9]{6}$/, '-4711-4j8k5k'],
  [machine, 'node-1'],
];

/** Shows values that are always the same in place of those that no two runs share, so that pictures of a page can be compared. */
export async function pinTexts(page: Page, more: Pin[] = []): Promise<void> {
  const pins = [...more, ...PINS].map(([pattern, shown]) => {
    const source = typeof pattern === 'string' ? literal(pattern) : pattern.source;
    return { source, shown };
  });
  await page.evaluate(`(() => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      let shown = texts.currentNode.data;
      for (const pin of ${JSON.stringify(pins)}) shown = shown.replace(new RegExp(pin.source, 'g'), pin.shown);
      if (shown !== texts.currentNode.data) texts.currentNode.data = shown;
    }
  })()`);
}

const literal = (text: string) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
