import { createHash } from 'node:crypto';
import { ERROR_MEANINGS } from '../../../shared/errors/error-meanings.ts';
import { ERRORS, type ErrorCode } from '../../../shared/errors/errors.ts';
import { contentPolicy } from '../../http/content-policy.ts';
import type { JsonObject } from '../json.ts';
import { TOPIC_NAMES, TOPICS } from '../topics.ts';
import { drawOperation } from './draw-operation.ts';
import { drawComponent } from './draw-schema.ts';
import { LOGIN_FORM } from './draw-try.ts';
import { drawText, escapeHtml } from './html.ts';
import { STYLE } from './style.ts';
import { SCRIPT } from './try-it.ts';

const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

/** The page loads nothing; its one style and its one script are allowed by their hashes (CSP 3, 6.7.3). */
export const DOCS_PAGE_CSP = contentPolicy(
  "default-src 'none'",
  `style-src ${hashOf(STYLE)}`,
  `script-src ${hashOf(SCRIPT)}`,
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
);

/** Renders the OpenAPI document as HTML. */
export function renderDocsPage(description: JsonObject): string {
  const { info, paths, components } = description as {
    info: JsonObject;
    paths: Record<string, Record<string, JsonObject>>;
    components: { schemas: Record<string, JsonObject> };
  };
  const { schemas } = components;
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation, schemas })),
  );
  const topics = TOPIC_NAMES.map(name => {
    const { title, means } = TOPICS[name];
    const drawn = operations
      .filter(({ operation }) => (operation.tags as string[]).includes(name))
      .map(drawOperation);
    return `<h2 id="${name}">${escapeHtml(title)}</h2><p>${escapeHtml(means)}</p>${drawn.join('')}`;
  });
  const named = Object.entries(schemas).map(([name, schema]) => drawComponent(name, schema));
  return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Windlass: the interface</title><style>${STYLE}</style>
<h1>Windlass ${escapeHtml(info.version)}</h1><p>${escapeHtml(info.description)} Every operation exists with and without <code>/api</code>. The same as data: <a href="openapi.json">OpenAPI 3.1</a>. <a href="../console/">To the console</a></p>
<p>Credentials: HTTP Basic, an API token as Bearer, or the cookie of a <a href="#beginLogin">login</a>. Errors are <code>application/problem+json</code> with a stable <code>code</code>, and a <code>hint</code> where something can be done; <a href="#errors">all of them</a>.</p>
<nav>${drawLinks()}</nav>${LOGIN_FORM}${topics.join('')}<h2 id="schemas">Schemas</h2>${named.join('')}${drawErrors()}<script>${SCRIPT}</script></html>`;
}

function drawLinks(): string {
  const titles = [
    ...TOPIC_NAMES.map(name => [name, TOPICS[name].title]),
    ['schemas', 'Schemas'],
    ['errors', 'Errors'],
  ];
  return titles.map(([id, title]) => `<a href="#${id}">${escapeHtml(title)}</a>`).join(' ');
}

/** Each error code under an id of its own, which the `type` of a problem document links to. */
function drawErrors(): string {
  const rows = (Object.keys(ERRORS) as ErrorCode[]).map(code => {
    const { status, title } = ERRORS[code];
    const { meaning, remedy } = ERROR_MEANINGS[code];
    return `<tr id="${code}"><td><code>${code}</code><td>${status}<td>${escapeHtml(title)}<td>${drawText(meaning)}<td>${drawText(remedy)}</tr>`;
  });
  return `<h2 id="errors">Errors</h2><table><tr><th>Code<th>Status<th>Title<th>Meaning<th>What to do</tr>${rows.join('')}</table>`;
}
