import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { Components } from '../../api/openapi/components.ts';
import type { Document, JsonObject } from '../interface/description.ts';
import { readDocument } from './read-document.ts';

interface Content {
  [type: string]: { schema?: JsonObject };
}
interface Described extends JsonObject {
  operationId: string;
  tags: string[];
  parameters: { schema: JsonObject }[];
  requestBody?: { content: Content };
  responses: Record<string, { content?: Content }>;
}

const TOPICS =
  'sessions commands jobs files videos uploads tables projects models accounts operations';

let document: Document;
let schemas: Record<string, JsonObject>;
let operations: Described[];

beforeAll(async () => {
  document = await readDocument();
  schemas = (document.components as { schemas: Record<string, JsonObject> }).schemas;
  operations = Object.values(document.paths).flatMap(methods =>
    Object.values(methods),
  ) as unknown as Described[];
});

describe('what generators of clients read', () => {
  test('the topics are in the order in which a user learns them, each with a description and operations', () => {
    const tags = document.tags as { name: string; description: string }[];
    expect(tags.map(({ name }) => name)).toEqual(TOPICS.split(' '));
    for (const { name, description } of tags) {
      expect(description).toMatch(/^[A-Z].*\.$/s);
      expect(operations.some(one => one.tags.includes(name))).toBe(true);
    }
    for (const { tags } of operations) expect(tags).toHaveLength(1);
  });

  test('operationIds are a verb and its object', () => {
    const ids = operations.map(({ operationId }) => operationId);
    expect(ids).toEqual(
      expect.arrayContaining(['launchCommand', 'listJobs', 'openSession', 'followJob']),
    );
    for (const id of ids) expect(id).toMatch(/^[a-z]+([A-Z][a-z]+)+$/);
  });

  test('every object has a name, which says what it is and has no number', () => {
    const unnamed: string[] = [];
    const walk = (value: unknown, at: string) => {
      if (typeof value !== 'object' || value === null) return;
      if ('properties' in value) unnamed.push(at);
      for (const [member, below] of Object.entries(value)) walk(below, `${at}/${member}`);
    };
    for (const { operationId, requestBody, responses } of operations)
      walk({ requestBody, responses }, operationId);
    for (const [name, { properties, ...rest }] of Object.entries(schemas)) {
      expect(name).toMatch(/^([A-Z][a-z]+)+$/);
      for (const [member, schema] of Object.entries({ ...(properties as object), rest }))
        if (member !== 'rest' || !('examples' in rest)) walk(schema, `${name}/${member}`);
    }
    expect(unnamed).toEqual([]);
    expect(Object.keys(schemas)).toEqual(
      expect.arrayContaining(
        'Job Session Command Project Model Table Upload Problem JobPage JobEvent'.split(' '),
      ),
    );
  });

  test('no bound is only that of a type', () => {
    const text = JSON.stringify(document);
    expect(text).not.toContain(String(Number.MIN_SAFE_INTEGER));
    expect(JSON.stringify(schemas)).not.toContain(String(Number.MAX_SAFE_INTEGER));
    expect(text).not.toContain(`"default":${Number.MAX_SAFE_INTEGER}`);
  });

  test('what is sent and answered has an example, which its schema allows', () => {
    const ajv = new Ajv2020({ strict: false });
    addFormats.default(ajv);
    ajv.addSchema(document, 'description');
    const without = new Set<string>();
    const contents = operations.flatMap(({ requestBody, responses }) => [
      requestBody?.content ?? {},
      ...Object.values(responses).map(({ content = {} }) => content),
    ]);
    for (const { schema } of contents.flatMap(content => Object.values(content))) {
      const text = JSON.stringify(schema ?? {});
      for (const [, name = ''] of text.matchAll(/"#\/components\/schemas\/(\w+)"/g))
        if (schemas[name]?.examples === undefined) without.add(name);
    }
    expect([...without]).toEqual([]);
    for (const [name, { examples = [] }] of Object.entries(schemas)) {
      const validate = ajv.getSchema(`description#/components/schemas/${name}`);
      for (const example of examples as unknown[])
        expect([name, validate?.(example), validate?.errors]).toEqual([name, true, null]);
    }
  });

  test('the events of a stream are told apart by their names', () => {
    const { discriminator, oneOf } = schemas.JobEvent as {
      discriminator: { propertyName: string; mapping: Record<string, string> };
      oneOf: { $ref: string }[];
    };
    expect(discriminator.propertyName).toBe('event');
    expect(Object.keys(discriminator.mapping)).toEqual(['state', 'progress', 'output', 'end']);
    expect(Object.values(discriminator.mapping)).toEqual(oneOf.map(({ $ref }) => $ref));
  });
});

describe('named schemas', () => {
  const named = (shape: z.ZodRawShape) => z.object(shape).meta({ id: 'Thing' });

  test('two of one name are refused, and so is an example of none', () => {
    const components = new Components({});
    components.toSchema(named({ a: z.string() }), 'output');
    components.toSchema(named({ a: z.string() }), 'output');
    expect(() => components.toSchema(named({ b: z.string() }), 'output')).toThrow(/named Thing/);
    expect(() => new Components({ Thing: {} }).all()).toThrow(/Thing/);
  });

  test('a bound that a request is refused beyond stays', () => {
    const safe = z.number().int().max(Number.MAX_SAFE_INTEGER);
    const components = new Components({});
    expect(components.toSchema(safe, 'input')).toMatchObject({ maximum: Number.MAX_SAFE_INTEGER });
    expect(components.toSchema(safe, 'output')).toEqual({ type: 'integer' });
  });
});
