import type { Page } from 'playwright-core';
import { expect } from 'vitest';

interface AxNode {
  ignored: boolean;
  role?: { value: string };
  name?: { value: string };
}

/** Roles of what is operated, and of what holds much: each is called something. */
const NAMED = new Set(
  [
    [
      'button',
      'link',
      'textbox',
      'searchbox',
      'combobox',
      'listbox',
      'option',
      'checkbox',
      'radio',
    ],
    ['radiogroup', 'switch', 'slider', 'spinbutton', 'tab', 'menuitem', 'DisclosureTriangle'],
    [
      'meter',
      'progressbar',
      'ProgressIndicator',
      'dialog',
      'table',
      'grid',
      'region',
      'navigation',
    ],
    ['image', 'img', 'figure', 'Video', 'Date', 'InputTime', 'DateTime'],
  ].flat(),
);
/** Two of these must not have one name: a person who hears only names could not tell them apart. */
const APART = new Set(['button', 'textbox', 'searchbox', 'combobox', 'slider', 'spinbutton']);

/** What Chromium gives a screen reader of the page: missing names, and names of two controls. */
async function findNameless(page: Page): Promise<string[]> {
  const devtools = await page.context().newCDPSession(page);
  const { nodes } = (await devtools.send('Accessibility.getFullAXTree')) as { nodes: AxNode[] };
  await devtools.detach();
  const found: string[] = [];
  const seen = new Map<string, number>();
  for (const { ignored, role, name } of nodes) {
    if (ignored || !role || !NAMED.has(role.value)) continue;
    const said = name?.value.trim() ?? '';
    if (said === '') found.push(`${role.value} without a name`);
    if (said === '' || !APART.has(role.value)) continue;
    const key = `${role.value} ${JSON.stringify(said)}`;
    seen.set(key, (seen.get(key) ?? 0) + 1);
  }
  for (const [key, count] of seen) if (count > 1) found.push(`${count} of ${key}`);
  return found;
}

export async function expectNamed(page: Page): Promise<void> {
  const found = await findNameless(page);
  expect([page.url(), found]).toEqual([page.url(), []]);
}
