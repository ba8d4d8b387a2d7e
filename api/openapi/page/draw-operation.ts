import type { JsonObject } from '../json.ts';
import { drawExample, drawNamed, drawSchema, exampleOf, nameType } from './draw-schema.ts';
import { drawTry } from './draw-try.ts';
import { drawText, escapeHtml } from './html.ts';

type Schemas = Record<string, JsonObject>;

interface Drawn {
  path: string;
  method: string;
  operation: JsonObject;
  schemas: Schemas;
}

/** An operation under its operationId, which opens it: the id is in what is hidden. */
export function drawOperation({ path, method, operation, schemas }: Drawn): string {
  const { parameters, requestBody, responses, deprecated } = operation as {
    parameters: JsonObject[];
    requestBody?: { description?: string; content: Record<string, JsonObject> };
    responses: Record<string, JsonObject>;
    deprecated?: boolean;
  };
  const title = `<span class="method">${method.toUpperCase()}</span><code${deprecated ? ' class="deprecated"' : ''}>${escapeHtml(path)}</code> ${escapeHtml(operation.summary)}`;
  const text = operation.description ? `<p>${drawText(operation.description)}</p>` : '';
  const id = escapeHtml(operation.operationId);
  const types = Object.keys(requestBody?.content ?? {});
  const sent = requestBody?.content['application/json']?.schema as JsonObject | undefined;
  const example = sent && exampleOf(sent, schemas);
  const tried = drawTry({ path, method, parameters, types, example });
  return `<details><summary>${title}</summary><div id="${id}"><p><a href="#${id}"><code>${id}</code></a></p>${text}${drawParameters(parameters)}${drawBody(requestBody, schemas)}${drawAnswers(responses, schemas)}${tried}</div></details>`;
}

function drawParameters(parameters: JsonObject[]): string {
  if (parameters.length === 0) return '';
  const rows = parameters.map(({ name, in: where, required, description, schema }) => {
    const { description: means } = schema as JsonObject;
    const words = description ?? means ?? nameType(schema as JsonObject);
    return `<tr><td><code>${escapeHtml(name)}</code><td>${escapeHtml(where)}${required ? ', required' : ''}<td>${drawText(words)}</tr>`;
  });
  return `<h4>Parameters</h4><table>${rows.join('')}</table>`;
}

function drawBody(
  body: { description?: string; content: Record<string, JsonObject> } | undefined,
  schemas: Schemas,
): string {
  const drawn = Object.entries(body?.content ?? {}).map(([type, { schema }]) => {
    const shape = schema as JsonObject;
    return `<h4>Body, ${escapeHtml(type)}</h4>${drawNamed(shape, schemas)}${drawExample(exampleOf(shape, schemas))}`;
  });
  return `${drawn.join('')}${body?.description ? `<p>${drawText(body.description)}</p>` : ''}`;
}

function drawAnswers(responses: Record<string, JsonObject>, schemas: Schemas): string {
  const rows = Object.entries(responses).map(([status, { description, content = {} }]) => {
    const types = Object.entries(content as Record<string, JsonObject>).map(([type, { schema }]) =>
      schema && type !== 'application/problem+json'
        ? `${drawSchema(schema as JsonObject)}${drawExample(exampleOf(schema as JsonObject, schemas))}`
        : `<code>${escapeHtml(type)}</code> `,
    );
    return `<tr><td>${escapeHtml(status)}<td>${drawText(description)} ${types.join('')}</tr>`;
  });
  return `<h4>Answers</h4><table class="answers">${rows.join('')}</table>`;
}
