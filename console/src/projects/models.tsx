import { useState } from 'preact/hooks';
import { Link } from 'wouter-preact';
import { type ModelSummary, useModels } from '../service/models.ts';
import { canWrite, type Project } from '../service/projects.ts';
import { Button } from '../ui/button.tsx';
import { Empty } from '../ui/empty.tsx';
import { PlusIcon } from '../ui/icons.tsx';
import { More } from '../ui/more.tsx';
import { formatCount } from '../ui/numbers.ts';
import { Problem } from '../ui/problem.tsx';
import { Table } from '../ui/table.tsx';
import { Ago } from '../ui/time.tsx';
import { useFirstRows, useReadOn } from '../ui/use-read-on.ts';
import { Wait } from '../ui/wait.tsx';
import { NewModelDialog } from './new-model-dialog.tsx';

/** The models of a project, those that were changed last first. */
export function Models({ project }: { project: Project }) {
  const list = useModels(project.id);
  const { data, error } = list;
  const [isAdding, setAdding] = useState(false);
  const isReading = useReadOn(list);
  const models = data?.pages
    .flatMap(page => page.items)
    .sort((a, b) => b.updated.localeCompare(a.updated));
  const { rows, more } = useFirstRows(models ?? [], list, isReading);
  const add = canWrite(project) && (
    <Button look="primary" onClick={() => setAdding(true)}>
      <PlusIcon />
      New model
    </Button>
  );
  return (
    <>
      <div class="page-head">
        <h2>Models</h2>
        {models && models.length > 0 && add}
      </div>
      {error && <Problem error={error} />}
      {!models && !error && <Wait>Asking for its models …</Wait>}
      {models && (
        <div class="card">
          {models.length > 0 && <ModelTable pid={project.id} models={rows} />}
          {models.length === 0 && (
            <Empty title="No model yet">
              <p>
                A model holds what belongs together: tables, files and arrays that were uploaded,
                and parameters. {canWrite(project) && 'Make one, and drop files into it.'}
              </p>
              {add}
            </Empty>
          )}
          {isReading && <Wait>{`Looking on, after ${formatCount(models.length)} …`}</Wait>}
          <More list={more}>More models</More>
        </div>
      )}
      {isAdding && <NewModelDialog pid={project.id} onClose={() => setAdding(false)} />}
    </>
  );
}

const ModelTable = ({ pid, models }: { pid: string; models: ModelSummary[] }) => (
  <Table
    label="Models"
    look="listing"
    rows={models}
    keyOf={({ id }) => id}
    columns={[
      {
        name: 'Model',
        cell: ({ id, name, description }) => (
          <>
            <Link
              class="job-link ellipsis"
              href={`/projects/${pid}/models/${id}/content`}
              title={name}
            >
              {name}
            </Link>
            {description !== '' && <span class="muted ellipsis below">{description}</span>}
          </>
        ),
      },
      { name: 'Type', cell: model => <span class="ellipsis">{model['model-type']}</span> },
      { name: 'Changed', cell: ({ updated }) => <Ago at={updated} /> },
    ]}
  />
);
