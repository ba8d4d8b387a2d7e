/**
 * `curl -fsS URL/api/openapi.json | node dist/scripts/keep-description.js`, at a release: keeps what it promises to
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

const document = readDescription(await text(process.stdin));
for (const { responses } of Object.values(document.paths).flatMap(one => Object.values(one)))
  for (const status of Object.keys(responses)) if (status >= '400') delete responses[status];
writeFileSync(FILE, `${JSON.stringify(document, keepPromises, 1)}\n`);

function readDescription(given: string): Document {
  if (given.trim() === '') exitWith('Nothing was given on standard input.');
  const document = parse(given);
  if (!document?.paths) exitWith('What was given on standard input is no description of an API.');
  return document;
}

function parse(given: string): Document | undefined {
  try {
    return JSON.parse(given);
  } catch {
    return undefined;
  }
}

function exitWith(line: string): never {
  console.error(line);
  process.exit(1);
}

function keepPromises(this: unknown, name: string, value: unknown): unknown {
  const isWords = ['description', 'summary'].includes(name) && typeof value === 'string';
  return isWords || name === 'examples' ? undefined : value;
}
