import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { Json, JsonObject } from './json.ts';

const REFERENCE = '#/components/schemas/';

/**
 * JSON Schemas of zod's. One with a name, `.meta({ id })`, is a component that others refer to. Throws where two
 * schemas have one name, or where a schema means one thing in a request and another in an answer.
 */
export class Components {
  readonly #examples: Record<string, Json>;
  readonly #schemas = new Map<string, JsonObject>();

  /** `examples` are by the name of the schema. */
  constructor(examples: Record<string, Json>) {
    this.#examples = examples;
  }

  toSchema(schema: z.ZodType, io: 'input' | 'output'): JsonObject {
    // In an array: zod makes no reference to the schema that it begins with.
    const { items, $defs = {} } = z.toJSONSchema(z.array(schema), {
      io,
      unrepresentable: 'any',
      override: ({ zodSchema, jsonSchema }) => describeAsSent(zodSchema, jsonSchema, io),
    });
    for (const [name, definition] of Object.entries($defs)) this.#add(name, refer(definition));
    return refer(items);
  }

  all(): Record<string, JsonObject> {
    for (const name of Object.keys(this.#examples))
      if (!this.#schemas.has(name)) throw new Error(`${name} has an example, but no schema`);
    for (const schema of this.#schemas.values()) this.#mapDiscriminator(schema);
    return Object.fromEntries([...this.#schemas].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** Says which schema each value of the discriminator means. */
  #mapDiscriminator({ discriminator, oneOf }: JsonObject): void {
    if (!discriminator) return;
    const { propertyName } = discriminator as { propertyName: string };
    const entries = (oneOf as { $ref: string }[]).map(({ $ref }) => {
      const { properties } = this.#schemas.get($ref.slice(REFERENCE.length)) as {
        properties: Record<string, { const: string }>;
      };
      return [properties[propertyName]?.const, $ref];
    });
    Object.assign(discriminator, { mapping: Object.fromEntries(entries) });
  }

  #add(name: string, { id: _, ...schema }: JsonObject): void {
    const example = this.#examples[name];
    const made = { ...schema, ...(example === undefined ? {} : { examples: [example] }) };
    const before = this.#schemas.get(name);
    if (before && !isDeepStrictEqual(before, made))
      throw new Error(`two schemas are named ${name}: name each by what it is`);
    this.#schemas.set(name, made);
  }
}

const refer = (schema: unknown): JsonObject =>
  JSON.parse(JSON.stringify(schema).replaceAll('"#/$defs/', `"${REFERENCE}`));

/**
 * Dates are sent as text (ISO 8601). Refinements that JSON Schema cannot express are left out. So are the bounds of
 * JavaScript's integers, but for the upper one in requests, which are refused above it.
 */
function describeAsSent(
  zodSchema: z.core.$ZodType,
  jsonSchema: z.core.JSONSchema.BaseSchema,
  io: 'input' | 'output',
): void {
  if (zodSchema._zod.def.type === 'date') {
    jsonSchema.type = 'string';
    jsonSchema.format = 'date-time';
  }
  if (zodSchema._zod.def.type === 'union' && 'discriminator' in zodSchema._zod.def)
    Object.assign(jsonSchema, {
      discriminator: { propertyName: zodSchema._zod.def.discriminator },
    });
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER && io === 'output') delete jsonSchema.maximum;
}
