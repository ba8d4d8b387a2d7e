import { unwrap } from '../../../clients/typescript/src/api.ts';
import { printRecord, printRecords } from '../../output/print-records.ts';
import { formatAge } from '../../output/table.ts';
import { connect } from '../connect.ts';
import { readPages } from '../read-pages.ts';

interface Options {
  json?: boolean;
}

/** `windlass project list` */
export async function listProjects({ json }: Options): Promise<void> {
  const { api } = await connect();
  const projects = await readPages(query =>
    unwrap(api.GET('/api/projects', { params: { query } })),
  );
  await printRecords(projects, {
    columns: {
      ID: ({ id }) => id,
      ROLE: ({ role }) => role,
      AGE: ({ created }) => formatAge(created),
      NAME: ({ name }) => name,
    },
    json,
  });
}

/** `windlass project create`: prints its id. */
export async function createProject(name: string, { json }: Options): Promise<void> {
  const { api } = await connect();
  const made = await unwrap(api.POST('/api/projects', { body: { name } }));
  await printRecord(made, { sentence: made.id, json });
}

/** `windlass model list` */
export async function listModels(pid: string, { json }: Options): Promise<void> {
  const { api } = await connect();
  const models = await readPages(query =>
    unwrap(api.GET('/api/projects/{pid}/models', { params: { path: { pid }, query } })),
  );
  await printRecords(models, {
    columns: {
      ID: ({ id }) => id,
      TYPE: model => model['model-type'],
      AGE: ({ created }) => formatAge(created),
      NAME: ({ name }) => name,
    },
    json,
  });
}

/** `windlass model show` */
export async function listArtifacts(mid: string, { json }: Options): Promise<void> {
  const { api } = await connect();
  const artifacts = await readPages(async query => {
    const params = { path: { mid }, query };
    const { artifacts: items, next } = await unwrap(api.GET('/api/models/{mid}', { params }));
    return { items, next };
  });
  await printRecords(artifacts, {
    columns: {
      TYPE: ({ type }) => type,
      INPUT: ({ input }) => (input ? 'yes' : 'no'),
      BYTES: ({ size }) => String(size),
      AGE: ({ updated }) => formatAge(updated),
      NAME: ({ aid }) => aid,
    },
    json,
  });
}

/** `windlass model create`: prints its id. */
export async function createModel(
  pid: string,
  name: string,
  { type, json }: Options & { type: string },
): Promise<void> {
  const { api } = await connect();
  const made = await unwrap(
    api.POST('/api/projects/{pid}/models', {
      params: { path: { pid } },
      body: { name, 'model-type': type },
    }),
  );
  await printRecord(made, { sentence: made.id, json });
}
