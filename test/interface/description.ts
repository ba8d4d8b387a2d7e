import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { Answer } from './send.ts';

export type JsonObject = { [member: string]: unknown };
interface MediaType {
  schema?: JsonObject;
}
interface Response {
  content?: Record<string, MediaType>;
}
interface Operation extends JsonObject {
  operationId: string;
  responses: Record<string, Response>;
}
export interface Document extends JsonObject {
  paths: Record<string, Record<string, Operation>>;
}

interface Path {
  template: string;
  pattern: RegExp;
  methods: Record<string, Operation>;
}

/** What the service says of itself at /api/openapi.json; every answer is held against it. */
export class Description {
  readonly document: Document;
  readonly #paths: Path[];
  readonly #ajv: Ajv2020;

  constructor(document: Document) {
    this.document = document;
    // Not strict: the document as a whole is more than a schema.
    this.#ajv = new Ajv2020({ strict: false, allErrors: true });
    addFormats.default(this.#ajv);
    this.#ajv.addSchema(document, 'description');
    this.#paths = Object.entries(document.paths)
      .map(([template, methods]) => ({ template, methods, pattern: toPattern(template) }))
      // A literal segment wins over a parameter, as in the service.
      .sort((a, b) => countParameters(a.template) - countParameters(b.template));
  }

  /** Every operation, as `GET /remotes/{sid}`: without the prefix. */
  operations(): string[] {
    return Object.entries(this.document.paths).flatMap(([template, methods]) =>
      Object.keys(methods).map(method => nameOf(method, template)),
    );
  }

  /**
   * Throws unless the answer is one that the operation is described to give; its name, where the request was for one.
   * `target` has no prefix where the operation has one.
   */
  hold(method: string, target: string, answer: Answer): string | undefined {
    const [path = ''] = target.split('?');
    const found = this.#paths.find(({ pattern }) => pattern.test(path));
    const asked = `${method} ${target.slice(0, 200)}: ${answer.status}`;
    // An answer to HEAD has the type of a body, and none.
    const hasBody = method !== 'HEAD';
    if (hasBody && answer.status >= 400 && answer.type === 'application/problem+json')
      this.#validate(asked, '#/components/schemas/Problem', answer);
    if (!found) return this.#holdUnknown(asked, answer);
    // A path that takes GET takes HEAD as well.
    const name = method === 'HEAD' && !found.methods.head ? 'get' : method.toLowerCase();
    const operation = found.methods[name];
    if (!operation) {
      if (answer.status !== 405 && answer.status !== 401)
        throw new Error(`${asked}, but ${found.template} has no such method`);
      return undefined;
    }
    this.#holdOperation(asked, { found, method, operation }, answer);
    return nameOf(name, found.template);
  }

  #holdUnknown(asked: string, answer: Answer): undefined {
    if ([401, 404, 414].includes(answer.status)) return undefined;
    throw new Error(`${asked}, but no such path is described`);
  }

  #holdOperation(
    asked: string,
    { found, method, operation }: { found: Path; method: string; operation: Operation },
    answer: Answer,
  ): void {
    const response = operation.responses[answer.status];
    if (!response) throw new Error(`${asked} is not described: ${answer.text.slice(0, 500)}`);
    const { content = {} } = response;
    if (answer.bytes.length === 0) {
      const isBodiless = method === 'HEAD' || [204, 304].includes(answer.status);
      if (!isBodiless && Object.keys(content).length > 0 && !isBytes(content))
        throw new Error(`${asked} has no body, but is described with one`);
      return;
    }
    const media = content[answer.type];
    if (!media) throw new Error(`${asked} has an undescribed media type: ${answer.type}`);
    if (!media.schema || answer.type !== 'application/json') return;
    const pointer = [
      'paths',
      found.template,
      method.toLowerCase(),
      'responses',
      answer.status,
      'content',
      answer.type,
      'schema',
    ].map(word => encodeURIComponent(String(word).replace(/~/g, '~0').replace(/\//g, '~1')));
    this.#validate(asked, `#/${pointer.join('/')}`, answer);
  }

  #validate(asked: string, pointer: string, answer: Answer): void {
    const validate = this.#ajv.getSchema(`description${pointer}`);
    if (!validate) throw new Error(`there is no schema at ${pointer}`);
    if (validate(answer.json<unknown>())) return;
    const told = this.#ajv.errorsText(validate.errors, { dataVar: 'body', separator: '\n' });
    throw new Error(`${asked} is not as described:\n${told}\n${answer.text.slice(0, 1_000)}`);
  }
}

/** An output of no bytes is whole without a body. */
const isBytes = (content: Record<string, MediaType>) =>
  Object.values(content).every(({ schema }) => !schema);

const nameOf = (method: string, template: string) =>
  `${method.toUpperCase()} ${withoutPrefix(template)}`;

/** Two operations exist with the prefix alone. */
const withoutPrefix = (template: string) =>
  template.replace(/^\/api(?=\/(?!docs$|openapi\.json$))/, '');

const countParameters = (template: string) => template.split('{').length;

/** Free-form rests of a path, which may hold slashes or be left out. */
const REST = ['key', 'path', 'event'];

function toPattern(template: string): RegExp {
  const pattern = withoutPrefix(template)
    .replace(/[.*+?^$()|[\]\\]/g, '\\$&')
    .replace(/\/\{(\w+)\}/g, (_, name: string) => (REST.includes(name) ? '(?:/.*)?' : '/[^/]*'));
  return new RegExp(`^${pattern}$`, 's');
}
