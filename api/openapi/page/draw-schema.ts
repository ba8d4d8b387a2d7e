import type { JsonObject } from '../json.ts';
import { drawText, escapeHtml } from './html.ts';

const nameOf = (reference: unknown) => String(reference).replace(/^.*\//, '');
const linkTo = (name: string) => `<a href="#schema-${name}">${name}</a>`;

/** A named schema, folded; a link to it opens it. */
export function drawComponent(name: string, schema: JsonObject): string {
  const [example] = (schema.examples ?? []) as unknown[];
  return `<details><summary><code>${name}</code></summary><div id="schema-${name}">${drawSchema(schema)}${drawExample(example)}</div></details>`;
}

/** A schema in words and as an outline, in which named schemas are links. */
export function drawSchema(schema: JsonObject): string {
  const words = schema.description ? `<p>${drawText(schema.description)}</p>` : '';
  return `${words}<pre>${outlineOf(schema, 0)}</pre>`;
}

/** Like drawSchema(); a named schema is a link, followed by the schema itself. */
export function drawNamed(schema: JsonObject, schemas: Record<string, JsonObject>): string {
  const named = schemas[nameOf(schema.$ref)];
  if (!named) return drawSchema(schema);
  const words = schema.description ? `<p>${drawText(schema.description)}</p>` : '';
  return `${words}<p>${linkTo(nameOf(schema.$ref))}</p>${drawSchema(named)}`;
}

export function drawExample(example: unknown): string {
  if (example === undefined) return '';
  return `<h4>Example</h4><pre>${escapeHtml(JSON.stringify(example, null, 2))}</pre>`;
}

/** The example of the first named schema in this one. */
export function exampleOf(schema: JsonObject, schemas: Record<string, JsonObject>): unknown {
  const [, name = ''] = /"#\/components\/schemas\/(\w+)"/.exec(JSON.stringify(schema)) ?? [];
  return (schemas[name]?.examples as unknown[] | undefined)?.[0];
}

/** A schema in the form of a JSON example, as HTML. */
function outlineOf(schema: JsonObject, depth: number): string {
  if (schema.$ref) return linkTo(nameOf(schema.$ref));
  const choices = (schema.anyOf ?? schema.oneOf) as JsonObject[] | undefined;
  if (choices) return choices.map(choice => outlineOf(choice, depth)).join(' | ');
  if (schema.properties) {
    const pad = '  '.repeat(depth + 1);
    const required = (schema.required ?? []) as string[];
    const members = Object.entries(schema.properties as Record<string, JsonObject>).map(
      ([name, member]) => {
        const mark = required.includes(name) ? '' : '?';
        const words = member.description ? `  // ${escapeHtml(member.description)}` : '';
        return `${pad}${escapeHtml(name)}${mark}: ${outlineOf(member, depth + 1)}${words}`;
      },
    );
    return `{\n${members.join('\n')}\n${'  '.repeat(depth)}}`;
  }
  if (schema.items) return `[${outlineOf(schema.items as JsonObject, depth)}, …]`;
  return escapeHtml(nameType(schema));
}

export function nameType(schema: JsonObject): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (Array.isArray(schema.enum))
    return schema.enum.map(value => JSON.stringify(value)).join(' | ');
  const type = Array.isArray(schema.type) ? schema.type.join(' | ') : (schema.type ?? 'any');
  const bounds = [
    schema.minimum === undefined ? '' : `≥ ${schema.minimum}`,
    schema.maximum === undefined || schema.maximum === Number.MAX_SAFE_INTEGER
      ? ''
      : `≤ ${schema.maximum}`,
    schema.default === undefined ? '' : `default ${JSON.stringify(schema.default)}`,
    schema.format ? String(schema.format) : '',
  ].filter(Boolean);
  return `${type}${bounds.length > 0 ? ` (${bounds.join(', ')})` : ''}`;
}
