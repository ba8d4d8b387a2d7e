/**
 * `curl -s URL/api/openapi.json | node dist/scripts/keep-description.js`, at a release: keeps what it promises to
 * clients, with which the next one is compared. Words, examples and errors are no promise.
 */
import { writeFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { packageRoot } from '../shared/process/package-root.ts';

const FILE = fileURLToPath(new URL('docs/openapi/previous.json', packageRoot));

interface Operation {
  parameters: object[];
  responses: Record<string, object>;
}
interface Document {
  paths: Record<string, Record<string, Operation>>;
}

const document = JSON.parse(await text(process.stdin)) as Document;
for (const { responses } of Object.values(document.paths).flatMap(one => Object.values(one)))
  for (const status of Object.keys(responses)) if (status >= '400') delete responses[status];
writeFileSync(FILE, `${JSON.stringify(document, keepPromises, 1)}\n`);

function keepPromises(this: unknown, name: string, value: unknown): unknown {
  const isWords = ['description', 'summary'].includes(name) && typeof value === 'string';
  return isWords || name === 'examples' ? undefined : value;
}
