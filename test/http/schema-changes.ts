import { isDeepStrictEqual } from 'node:util';

interface Schema {
  $ref?: string;
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  anyOf?: Schema[];
  oneOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: Schema | boolean;
  items?: Schema;
  [member: string]: unknown;
}

/** The named schemas of both descriptions, to which schemas refer. */
export type Schemas = [before: Record<string, object>, after: Record<string, object>];

/** Two schemas and where they are. */
interface Pair {
  before: Schema;
  after: Schema;
  at: string;
}

/** What a server must still take: the later schema may allow more, never less. */
export const compareRequest = (before: Schema, after: Schema, at: string, schemas: Schemas) =>
  new Comparison(schemas, 'request').compare({ before, after, at });

/** What a client must still understand: the later schema may promise more, never less. */
export const compareAnswer = (before: Schema, after: Schema, at: string, schemas: Schemas) =>
  new Comparison(schemas, 'answer').compare({ before, after, at });

/** Bounds by which a schema allows less where they are greater, less, or not what they were. */
const LOWER = ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties'];
const UPPER = ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties'];
const EXACT = ['pattern', 'format', 'multipleOf', 'dependentRequired'];

class Comparison {
  readonly #schemas: Schemas;
  readonly #of: 'request' | 'answer';
  /** The pairs of names that are being compared: a schema that holds itself is compared once. */
  readonly #begun = new Set<string>();

  constructor(schemas: Schemas, of: 'request' | 'answer') {
    this.#schemas = schemas;
    this.#of = of;
  }

  compare(pair: Pair): string[] {
    const names = [pair.before.$ref, pair.after.$ref].join();
    if (!pair.before.$ref || !pair.after.$ref) return this.#compareAll(pair);
    if (this.#begun.has(names)) return [];
    this.#begun.add(names);
    const changes = this.#compareAll(pair);
    this.#begun.delete(names);
    return changes;
  }

  #compareAll({ at, ...pair }: Pair): string[] {
    const before = this.#alternatives(pair.before, 0);
    const after = this.#alternatives(pair.after, 1);
    const [one, other] = [before[0], after[0]];
    if (one && other && before.length === 1 && after.length === 1)
      return this.#compareOne({ before: one, after: other, at });
    // Each alternative of those must have one here that means no less.
    const [those, these] = this.#of === 'request' ? [before, after] : [after, before];
    const lost = those.filter(
      that =>
        !these.some(candidate => {
          const [b, a] = this.#of === 'request' ? [that, candidate] : [candidate, that];
          return this.#compareOne({ before: b, after: a, at }).length === 0;
        }),
    );
    const says = this.#of === 'request' ? 'no longer takes' : 'may now be';
    return lost.map(schema => `${at} ${says} ${tell(schema)}`);
  }

  /** A schema without references and unions: a list of types is a union of them. */
  #alternatives(schema: Schema, which: 0 | 1): Schema[] {
    const { $ref, anyOf, oneOf, type, ...rest } = schema;
    if ($ref) {
      const named = this.#schemas[which][$ref.replace(/^.*\//, '')] as Schema | undefined;
      if (!named) throw new Error(`${$ref} is not in the description`);
      return this.#alternatives(named, which);
    }
    const union = anyOf ?? oneOf;
    if (union) return union.flatMap(one => this.#alternatives(one, which));
    if (Array.isArray(type)) return type.map(one => ({ ...rest, type: one }));
    return [schema];
  }

  #compareOne(pair: Pair): string[] {
    const { before, after, at } = pair;
    if (isDeepStrictEqual(before, after) && !JSON.stringify(before).includes('$ref')) return [];
    const [narrow, wide] = this.#of === 'request' ? [before, after] : [after, before];
    if (!isTypeWithin(narrow.type, wide.type))
      return [`${at} was ${tell(before)} and is ${tell(after)}`];
    return [
      ...(this.#of === 'request' ? findNarrower(pair) : []),
      ...this.#compareMembers(pair),
      ...this.#compareParts(pair),
    ];
  }

  #compareMembers({ before, after, at }: Pair): string[] {
    const [had, has] = [before.properties ?? {}, after.properties ?? {}];
    const changes = Object.entries(had).flatMap(([name, schema]) => {
      const other = has[name];
      if (other) return this.compare({ before: schema, after: other, at: `${at}.${name}` });
      return this.#of === 'request' ? [`${at}.${name} is gone`] : [];
    });
    const [from, to] = [before.required ?? [], after.required ?? []];
    if (this.#of === 'request') {
      const added = to.filter(name => !from.includes(name));
      return [...changes, ...added.map(name => `${at}.${name} is newly required`)];
    }
    const lost = from.filter(name => !to.includes(name));
    return [
      ...changes,
      ...lost.map(name => `${at}.${name} is ${name in has ? 'not always there' : 'gone'}`),
    ];
  }

  #compareParts({ before, after, at }: Pair): string[] {
    const changes: string[] = [];
    if (before.items && after.items)
      changes.push(...this.compare({ before: before.items, after: after.items, at: `${at}[]` }));
    const [had, has] = [before.additionalProperties, after.additionalProperties];
    if (typeof had === 'object' && typeof has === 'object')
      changes.push(...this.compare({ before: had, after: has, at: `${at}.*` }));
    if (this.#of === 'request' && had !== false && has === false && before.type === 'object')
      changes.push(`${at} takes no other members any more`);
    return changes;
  }
}

function findNarrower({ before, after, at }: Pair): string[] {
  const [had, has] = [valuesOf(before), valuesOf(after)];
  if (has && !had) return [`${at} takes only ${tell(after)}`];
  const lost = had?.filter(value => has && !has.includes(value)) ?? [];
  const isRaised = (name: string) => bound(after, name, -Infinity) > bound(before, name, -Infinity);
  const isLowered = (name: string) => bound(after, name, Infinity) < bound(before, name, Infinity);
  const isOther = (name: string) =>
    after[name] !== undefined && !isDeepStrictEqual(after[name], before[name]);
  const bounds = [
    ...LOWER.filter(isRaised),
    ...UPPER.filter(isLowered),
    ...EXACT.filter(isOther),
  ].map(name => `${at} is narrower: ${name} ${JSON.stringify(after[name])}`);
  return [...lost.map(value => `${at} no longer takes ${JSON.stringify(value)}`), ...bounds];
}

const bound = (schema: Schema, name: string, otherwise: number) =>
  (schema[name] as number | undefined) ?? otherwise;

const valuesOf = ({ enum: values, const: value }: Schema): unknown[] | undefined =>
  values ?? (value === undefined ? undefined : [value]);

function isTypeWithin(narrow: Schema['type'], wide: Schema['type']): boolean {
  return wide === undefined || narrow === wide || (narrow === 'integer' && wide === 'number');
}

const tell = (schema: Schema): string =>
  valuesOf(schema)
    ?.map(value => JSON.stringify(value))
    .join(' | ') ?? String(schema.type ?? 'anything');
