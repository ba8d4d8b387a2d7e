import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { Express } from 'express';
import { chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ROUTES } from '../../api/all-routes.ts';
import { createApp } from '../../api/app.ts';
import { findProgram } from '../../scripts/programs.ts';
import { describeUnless, missingPrograms } from '../harness/skip.ts';
import { type IdleApp, openIdleApp } from '../interface/app.ts';
import { SECTIONS } from '../interface/cases/all.ts';
import { ELSEWHERE } from '../interface/cases/elsewhere.ts';
import { Description, type Document, type JsonObject } from '../interface/description.ts';
import { type Answer, send } from '../interface/send.ts';

interface Layer {
  route?: { path: string; stack: { method?: string }[] };
  handle: { stack?: Layer[] };
  match(address: string): unknown;
}
type RouteLayer = Layer & Required<Pick<Layer, 'route'>>;
interface Parameter extends JsonObject {
  name: string;
  in: string;
  required?: boolean;
  schema: JsonObject;
}
interface Response extends JsonObject {
  description: string;
  content?: Record<string, { schema?: JsonObject }>;
  headers?: Record<string, JsonObject>;
}

// The app as it is, with nothing behind it: what it says of itself needs no server.
let idle: IdleApp;
let server: Server;
let url: string;
let document: Document;

beforeAll(async () => {
  idle = await openIdleApp();
  server = createServer(idle.app).listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const answer = await send(url, { method: 'GET', target: '/api/openapi.json' });
  document = answer.json<Document>();
});
afterAll(async () => {
  server?.close();
  server?.closeAllConnections();
  await idle?.close();
});

const operations = () =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      name: `${method.toUpperCase()} ${path}`,
      path,
      operation: operation as typeof operation & {
        parameters: Parameter[];
        responses: Record<string, Response>;
        requestBody?: { content: Record<string, { schema?: JsonObject }> };
        tags: string[];
        security?: object[];
      },
    })),
  );

describe('the description and the service', () => {
  test('every route is described, and what is described is routed', () => {
    const routed = readRoutes(idle.app);
    const described = new Set(
      operations().map(({ name }) => name.replace(/ \/api(?=\/(?!docs$|openapi\.json$))/, ' ')),
    );
    // These two are answered by middlewares, which describe them by hand.
    const byHand = ['POST /events/{event}', 'GET /admin/queues'];
    expect([...routed, ...byHand].sort()).toEqual([...described].sort());
    expect(routed.size).toBeGreaterThan(50);
  });

  test('every GET that takes If-None-Match may be answered 304', () => {
    const conditional = operations().filter(
      ({ name, operation }) =>
        name.startsWith('GET ') &&
        operation.parameters?.some(parameter => parameter.name === 'If-None-Match'),
    );
    expect(conditional.length).toBeGreaterThan(5);
    const without = conditional.filter(({ operation }) => !operation.responses['304']);
    expect(without.map(({ name }) => name)).toEqual([]);
  });

  test('no path shadows another: each address leads to its own route', () => {
    for (const layers of readRouters(idle.app)) {
      for (const { path } of layers.map(({ route }) => route)) {
        const address = path.replace(/[{}]/g, '').replace(/[:*]\w+/g, 'x');
        const first = layers.find(layer => layer.match(address));
        expect([path, first?.route.path]).toEqual([path, path]);
      }
    }
  });

  test('the order in which files are read changes nothing', () => {
    const [one, other] = [ROUTES, ROUTES.toReversed()].map(list =>
      readRouters(createApp(idle.context, list)).map(layers =>
        layers.map(({ route }) => route.path),
      ),
    );
    expect(one).toEqual(other);
  });

  test('every operation has a case in the acceptance suite, and no case is about another', () => {
    const cases = new Set(Object.values(SECTIONS).flatMap(rows => rows.flatMap(({ of }) => of)));
    const named = new Description(document).operations();
    expect([...cases].sort()).toEqual([...named].sort());
  });

  test('what is held elsewhere is held there', () => {
    const root = join(import.meta.dirname, '../..');
    for (const [sentence, tests] of Object.entries(ELSEWHERE)) {
      expect([sentence, tests]).toEqual([sentence, expect.arrayContaining([expect.anything()])]);
      for (const { file, test: name } of tests) {
        const named = findTests(readFileSync(join(root, file), 'utf8'));
        expect([file, name, named.some(one => one.test(name))]).toEqual([file, name, true]);
      }
    }
  });

  test('no two cases have one name', () => {
    const names = Object.values(SECTIONS).flatMap(rows => rows.map(({ name }) => name));
    expect(names).toEqual([...new Set(names)]);
  });
});

/** The names of the tests that a file has, where they stand for themselves; what a template takes in may be anything. */
function findTests(source: string): RegExp[] {
  const named = /\btest(?:\.\w+\([\s\S]*?\))?\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g;
  return [...source.matchAll(named)].flatMap(([, , name = '']) => {
    const words = name.replace(/\\(.)/g, '$1').split(/\$\{[^}]*\}/);
    // A name that has no words of its own would be that of any test.
    if (words.join('').trim() === '') return [];
    const escaped = words.map(text => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
    return [new RegExp(`^${escaped.join('.+')}$`)];
  });
}

/** The methods of each path; `all`, which answers 405, is none. */
function readRoutes(app: Express): Set<string> {
  const routes = readRouters(app).flatMap(layers => layers.map(({ route }) => route));
  return new Set(
    routes.flatMap(({ path, stack }) => {
      const template = path.replace(/[{}]/g, '').replace(/[:*](\w+)/g, '{$1}');
      return stack.flatMap(({ method }) => (method ? `${method.toUpperCase()} ${template}` : []));
    }),
  );
}

/** The layers of every router that are routes. */
function readRouters(app: Express): RouteLayer[][] {
  const walk = (layers: Layer[]): RouteLayer[][] => [
    layers.filter((layer): layer is RouteLayer => layer.route !== undefined),
    // A route's own dispatcher has no routes; neither has a middleware.
    ...layers.flatMap(({ route, handle }) => (route ? [] : walk(handle.stack ?? []))),
  ];
  return walk((app.router as unknown as { stack: Layer[] }).stack);
}

describe('the document is OpenAPI 3.1', () => {
  test('its head', () => {
    expect(document.openapi).toMatch(/^3\.1\.\d+$/);
    expect(document.info).toMatchObject({ title: 'Windlass', version: expect.any(String) });
    expect((document.info as JsonObject).license).toMatchObject({ name: 'Apache-2.0' });
  });

  test('operationIds are words, and none repeats', () => {
    const ids = operations().map(({ operation }) => operation.operationId);
    expect(ids).toEqual([...new Set(ids)]);
    for (const id of ids) expect(id).toMatch(/^\w+$/);
  });

  test('a path declares each of its parameters, and no parameter is declared twice', () => {
    for (const { name, path, operation } of operations()) {
      expect(path).toMatch(/^\//);
      const inPath = operation.parameters.filter(parameter => parameter.in === 'path');
      const wanted = [...path.matchAll(/\{(\w+)\}/g)].map(match => match[1]);
      expect([name, inPath.map(parameter => parameter.name)]).toEqual([name, wanted]);
      for (const parameter of inPath) expect(parameter.required).toBe(true);
      const all = operation.parameters.map(parameter => `${parameter.in} ${parameter.name}`);
      expect([name, all]).toEqual([name, [...new Set(all)]]);
      for (const { in: where } of operation.parameters)
        expect(['path', 'query', 'header']).toContain(where);
    }
  });

  test('no two paths are the same but for the names of their parameters', () => {
    const paths = Object.keys(document.paths).map(path => path.replace(/\{\w+\}/g, '{}'));
    expect(paths).toEqual([...new Set(paths)]);
  });

  test('every operation has a summary, a tag that is declared, known credentials and a success', () => {
    const tags = (document.tags as { name: string }[]).map(({ name }) => name);
    const { securitySchemes } = document.components as { securitySchemes: object };
    const used = [...(document.security as object[])];
    for (const { name, operation } of operations()) {
      expect([name, operation.summary]).toEqual([name, expect.stringMatching(/./)]);
      expect(tags).toEqual(expect.arrayContaining(operation.tags));
      used.push(...(operation.security ?? []));
      const statuses = Object.keys(operation.responses);
      expect(statuses.some(status => /^[23]/.test(status))).toBe(true);
      for (const status of statuses) expect(status).toMatch(/^[2-5]\d\d$/);
    }
    const schemes = Object.keys(securitySchemes);
    for (const one of used) expect(schemes).toEqual(expect.arrayContaining(Object.keys(one)));
  });

  test('responses and bodies have a description, media types, and schemas of JSON Schema 2020-12', () => {
    const ajv = new Ajv2020({ strict: false });
    addFormats.default(ajv);
    ajv.addSchema(document, 'description');
    const compiled = new Set<string>();
    const compile = (content: Record<string, { schema?: JsonObject }> = {}) => {
      for (const [type, { schema }] of Object.entries(content)) {
        expect(type).toMatch(/^\w+\/[\w.+-]+$/);
        const text = JSON.stringify(schema);
        if (schema === undefined || compiled.has(text)) continue;
        compiled.add(text);
        expect(ajv.validateSchema(schema), ajv.errorsText()).toBe(true);
        ajv.compile(absolute(schema));
      }
    };
    for (const { operation } of operations()) {
      compile(operation.requestBody?.content);
      for (const parameter of operation.parameters) compile({ 'text/plain': parameter });
      for (const { description, content, headers = {} } of Object.values(operation.responses)) {
        expect(description).toMatch(/./);
        compile(content);
        for (const header of Object.values(headers)) expect(header).toHaveProperty('schema');
      }
    }
    expect(compiled.size).toBeGreaterThan(100);
  });
});

/** A reference into the document, from a schema that was taken out of it. */
const absolute = (schema: JsonObject): JsonObject =>
  JSON.parse(
    JSON.stringify(schema).replaceAll('"$ref":"#/components/', '"$ref":"description#/components/'),
  );

describe('an answer is held against the description', () => {
  const answer = (status: number, body: unknown, type = 'application/json'): Answer => {
    const text = body === undefined ? '' : JSON.stringify(body);
    const bytes = Buffer.from(text);
    return { status, reason: '', headers: {}, type, bytes, text, json: () => JSON.parse(text) };
  };
  const hold = (...[method, target, given]: [string, string, Answer]) =>
    new Description(document).hold(method, target, given);
  const made = { id: 'x' };

  test('one that is as described passes, under the name of its operation', () => {
    expect(hold('POST', '/projects', answer(201, made))).toBe('POST /projects');
    expect(hold('GET', '/remotes/launch', answer(405, undefined))).toBe(undefined);
    expect(hold('GET', '/healthz', answer(200, { ok: true }))).toBe('GET /healthz');
    expect(hold('GET', '/projects/p/cache/a/b', answer(304, undefined))).toBe(
      'GET /projects/{pid}/cache/{key}',
    );
  });

  test.each([
    ['a status that is not described', 'POST', '/projects', answer(200, made)],
    ['a media type that is not', 'POST', '/projects', answer(201, made, 'text/html')],
    ['a body that lacks a member', 'POST', '/projects', answer(201, {})],
    ['one that has another', 'POST', '/projects', answer(201, { ...made, more: 1 })],
    ['one of another type', 'POST', '/projects', answer(201, { id: 7 })],
    ['no body', 'POST', '/projects', answer(201, undefined)],
    ['an error of another shape', 'GET', '/jobs/x', answer(404, made, 'application/problem+json')],
    ['a path that is not', 'GET', '/nowhere', answer(200, made)],
    ['a method that is not', 'PUT', '/projects', answer(200, made)],
    ['what exists once, under the prefix', 'GET', '/api/healthz', answer(200, { ok: true })],
  ])('%s is refused', (_, method, target, given) => {
    expect(() => hold(method, target, given)).toThrow();
  });
});

describeUnless(missingPrograms('chromium'), 'the page at /api/docs', () => {
  test('is whole in a browser that reaches this service alone, under its policy', async () => {
    const browser = await chromium.launch({
      executablePath: findProgram('chromium'),
      args: ['--no-sandbox'],
    });
    try {
      const page = await browser.newPage();
      const troubles: string[] = [];
      const asked: string[] = [];
      page.on('console', line => troubles.push(line.text()));
      page.on('pageerror', error => troubles.push(error.message));
      page.on('request', request => asked.push(request.url()));
      await page.route('**', route =>
        route.request().url().startsWith(`${url}/`) ? route.continue() : route.abort(),
      );
      const answer = await page.goto(`${url}/api/docs`);
      const policy = answer?.headers()['content-security-policy'] ?? '';
      expect(policy).toContain("default-src 'none'");
      expect(policy).not.toContain('unsafe');
      for (const { name, path, operation } of operations()) {
        const entry = page
          .locator('summary')
          .filter({ hasText: `${path} ${operation.summary}` })
          .first();
        expect([name, await entry.textContent()]).toEqual([name, expect.stringContaining(path)]);
      }
      // The style took: without it the page has the browser's own width.
      const width = await page.locator('body').evaluate('body => getComputedStyle(body).maxWidth');
      expect(width).not.toBe('none');
      await page.locator('summary').first().click();
      await page.locator('details[open] h4').first().waitFor();
      expect(troubles).toEqual([]);
      expect(asked.filter(target => !target.startsWith(`${url}/`))).toEqual([]);
    } finally {
      await browser.close();
    }
  });
});
