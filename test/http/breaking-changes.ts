import { compareAnswer, compareRequest, type Schemas } from './schema-changes.ts';

type JsonObject = { [member: string]: unknown };
interface Content {
  content?: Record<string, { schema?: JsonObject }>;
}
interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  schema: JsonObject;
}
interface Operation {
  operationId: string;
  parameters: Parameter[];
  requestBody?: Content & { required?: boolean };
  responses: Record<string, Content>;
  security?: object[];
}
export interface Description {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, JsonObject> };
}

/** What a client of the description `before` cannot rely on any more, each named with its operation. */
export function findBreakingChanges(before: Description, after: Description): string[] {
  const schemas: Schemas = [before.components.schemas, after.components.schemas];
  return Object.entries(before.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, one]) => {
      const name = `${method.toUpperCase()} ${path}`;
      const other = after.paths[path]?.[method];
      const changes = other ? compareOperations(one, other, schemas) : ['the operation is gone'];
      return changes.map(change => `${name}: ${change}`);
    }),
  );
}

function compareOperations(before: Operation, after: Operation, schemas: Schemas): string[] {
  return [
    ...(before.operationId === after.operationId
      ? []
      : [`${before.operationId} is called ${after.operationId}`]),
    ...(before.security?.length === 0 && after.security?.length !== 0
      ? ['it needs credentials now']
      : []),
    ...compareParameters(before.parameters, after.parameters, schemas),
    ...compareBodies(before, after, schemas),
    ...compareAnswers(before, after, schemas),
  ];
}

function compareParameters(before: Parameter[], after: Parameter[], schemas: Schemas): string[] {
  const find = (list: Parameter[], { name, in: where }: Parameter) =>
    list.find(one => one.name === name && one.in === where);
  const changes = before.flatMap(one => {
    const other = find(after, one);
    const what = `the ${one.in} parameter ${one.name}`;
    return other ? compareRequest(one.schema, other.schema, what, schemas) : [`${what} is gone`];
  });
  const required = after
    .filter(one => one.required && !find(before, one)?.required)
    .map(one => `the ${one.in} parameter ${one.name} is newly required`);
  return [...changes, ...required];
}

function compareBodies(before: Operation, after: Operation, schemas: Schemas): string[] {
  const changes = Object.entries(before.requestBody?.content ?? {}).flatMap(
    ([type, { schema }]) => {
      const other = after.requestBody?.content?.[type];
      if (!other) return [`no body of ${type} is taken any more`];
      return compareRequest(schema ?? {}, other.schema ?? {}, 'the body', schemas);
    },
  );
  const isNewlyRequired = after.requestBody?.required && !before.requestBody?.required;
  return isNewlyRequired ? [...changes, 'a body is newly required'] : changes;
}

/** Errors may come and go: a client that knows problem documents knows them all. */
function compareAnswers(before: Operation, after: Operation, schemas: Schemas): string[] {
  const successes = Object.entries(before.responses).filter(([status]) => status < '400');
  return successes.flatMap(([status, { content = {} }]) => {
    const other = after.responses[status];
    if (!other) return [`there is no answer ${status} any more`];
    return Object.entries(content).flatMap(([type, { schema }]) => {
      const media = other.content?.[type];
      if (!media) return [`answer ${status} is not ${type} any more`];
      return compareAnswer(schema ?? {}, media.schema ?? {}, `answer ${status}`, schemas);
    });
  });
}
