import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../../..');
const read = (page: string) => readFileSync(join(root, page), 'utf8');

/** The pages of the guide, in the order in which it names them, and in which their commands run. */
export const guidePages: string[] = [
  'docs/guide.md',
  ...[...read('docs/guide.md').matchAll(/^- \[.*?\]\((http\/\w+\.md)\)/gm)].map(
    ([, page]) => `docs/${page}`,
  ),
];

/** All of the guide. */
export const guide: string = guidePages.map(read).join('\n');
