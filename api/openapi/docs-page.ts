import { createHash } from 'node:crypto';
import { ERROR_MEANINGS } from '../../shared/error-meanings.ts';
import { ERRORS, type ErrorCode } from '../../shared/errors.ts';
import { contentPolicy } from '../http/content-policy.ts';
import type { JsonObject } from './json.ts';

const STYLE = `
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --accent: #2563a8; }
@media (prefers-color-scheme: dark) { :root { --accent: #7db7f0; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
nav a { margin-right: .8rem; }
a { color: var(--accent); }
h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
details { border: 1px solid var(--line); border-radius: .4rem; margin: .4rem 0; padding: .3rem .8rem; }
summary { cursor: pointer; }
code, pre { font: 14px/1.45 ui-monospace, monospace; }
pre { background: var(--soft); padding: .6rem .8rem; border-radius: .4rem; overflow-x: auto; }
.method { display: inline-block; min-width: 4.2rem; font-weight: 600; color: var(--accent); }
.deprecated { text-decoration: line-through; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; }
tr:target { background: var(--soft); }
td { border-top: 1px solid var(--line); padding: .2rem .8rem .2rem 0; vertical-align: top; }
td:first-child { white-space: nowrap; }
`;

/** The page has no script and loads nothing; its one style is allowed by its hash (CSP 3, 6.7.3). */
export const DOCS_PAGE_CSP = contentPolicy(
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
);

/** Renders the OpenAPI document as HTML. */
export function renderDocsPage(description: JsonObject): string {
  const { info, paths } = description as { info: JsonObject; paths: Record<string, JsonObject> };
  const groups = new Map<string, string[]>();
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const drawn = drawOperation(path, method, operation as JsonObject);
      const [tag = ''] = (operation as { tags: string[] }).tags;
      groups.set(tag, [...(groups.get(tag) ?? []), drawn]);
    }
  }
  const sections = [...groups].map(
    ([tag, drawn]) => `<h2 id="${escapeHtml(tag)}">${escapeHtml(tag)}</h2>${drawn.join('')}`,
  );
  const links = [...groups.keys(), 'errors'].map(
    tag => `<a href="#${escapeHtml(tag)}">${escapeHtml(tag)}</a>`,
  );
  return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Windlass: the interface</title><style>${STYLE}</style>
<h1>Windlass ${escapeHtml(info.version)}</h1><p>${escapeHtml(info.description)} Every operation exists with and without <code>/api</code>. The same as data: <a href="/api/openapi.json">OpenAPI 3.1</a>.</p>
<p>Credentials: HTTP Basic, an API token as Bearer, or the cookie of <a href="#login">login</a>. Errors are <code>application/problem+json</code> with a stable <code>code</code>, and a <code>hint</code> where something can be done; <a href="#errors">all of them</a>.</p>
<nav>${links.join('')}</nav>${sections.join('')}${drawErrors()}</html>`;
}

/** Each error code under an id of its own, which the `type` of a problem document links to. */
function drawErrors(): string {
  const rows = (Object.keys(ERRORS) as ErrorCode[]).map(code => {
    const { status, title } = ERRORS[code];
    const { meaning, remedy } = ERROR_MEANINGS[code];
    return `<tr id="${code}"><td><code>${code}</code><td>${status}<td>${escapeHtml(title)}<td>${drawText(meaning)}<td>${drawText(remedy)}</tr>`;
  });
  return `<h2 id="errors">errors</h2><table><tr><th>Code<th>Status<th>Title<th>Meaning<th>What to do</tr>${rows.join('')}</table>`;
}

/** Text in which code stands between backquotes. */
const drawText = (text: string) => escapeHtml(text).replace(/`([^`]*)`/g, '<code>$1</code>');

function drawOperation(path: string, method: string, operation: JsonObject): string {
  const { parameters, requestBody, responses, deprecated } = operation as {
    parameters: JsonObject[];
    requestBody?: { content: Record<string, JsonObject> };
    responses: Record<string, JsonObject>;
    deprecated?: boolean;
  };
  const title = `<span class="method">${method.toUpperCase()}</span><code${deprecated ? ' class="deprecated"' : ''}>${escapeHtml(path)}</code> ${escapeHtml(operation.summary)}`;
  const text = operation.description ? `<p>${escapeHtml(operation.description)}</p>` : '';
  return `<details><summary>${title}</summary>${text}${drawParameters(parameters)}${drawBody(requestBody?.content)}${drawAnswers(responses)}</details>`;
}

function drawParameters(parameters: JsonObject[]): string {
  if (parameters.length === 0) return '';
  const rows = parameters.map(({ name, in: where, required, description, schema }) => {
    const words = description ?? nameType(schema as JsonObject);
    return `<tr><td><code>${escapeHtml(name)}</code><td>${escapeHtml(where)}${required ? ', required' : ''}<td>${escapeHtml(words)}</tr>`;
  });
  return `<h4>Parameters</h4><table>${rows.join('')}</table>`;
}

function drawBody(content: Record<string, JsonObject> = {}): string {
  const drawn = Object.entries(content).map(
    ([type, { schema }]) => `<h4>Body, ${escapeHtml(type)}</h4>${drawSchema(schema as JsonObject)}`,
  );
  return drawn.join('');
}

function drawAnswers(responses: Record<string, JsonObject>): string {
  const rows = Object.entries(responses).map(([status, { description, content = {} }]) => {
    const types = Object.entries(content as Record<string, JsonObject>).map(
      ([type, { schema }]) => {
        const isProblem = type === 'application/problem+json';
        return schema && !isProblem
          ? drawSchema(schema as JsonObject)
          : `<code>${escapeHtml(type)}</code> `;
      },
    );
    return `<tr><td>${escapeHtml(status)}<td>${escapeHtml(description)} ${types.join('')}</tr>`;
  });
  return `<h4>Answers</h4><table>${rows.join('')}</table>`;
}

function drawSchema(schema: JsonObject): string {
  const words = schema.description ? `<p>${escapeHtml(schema.description)}</p>` : '';
  const outline = outlineOf(schema, 0);
  return outline ? `${words}<pre>${escapeHtml(outline)}</pre>` : words;
}

/** A schema in the form of a JSON example. */
function outlineOf(schema: JsonObject, depth: number): string {
  const pad = '  '.repeat(depth + 1);
  const choices = (schema.anyOf ?? schema.oneOf) as JsonObject[] | undefined;
  if (choices) return choices.map(choice => outlineOf(choice, depth)).join(' | ');
  if (schema.properties) {
    const required = (schema.required ?? []) as string[];
    const members = Object.entries(schema.properties as Record<string, JsonObject>).map(
      ([name, member]) =>
        `${pad}${name}${required.includes(name) ? '' : '?'}: ${outlineOf(member, depth + 1)}`,
    );
    return `{\n${members.join('\n')}\n${'  '.repeat(depth)}}`;
  }
  if (schema.items) return `[${outlineOf(schema.items as JsonObject, depth)}, …]`;
  return nameType(schema);
}

function nameType(schema: JsonObject): string {
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

function escapeHtml(text: unknown): string {
  return String(text).replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`);
}
