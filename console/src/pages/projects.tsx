import { useState } from 'preact/hooks';
import { Link } from 'wouter-preact';
import { NewProjectDialog } from '../projects/new-project-dialog.tsx';
import { ROLES } from '../projects/roles.ts';
import { type ProjectSummary, useProjects } from '../service/projects.ts';
import { Button } from '../ui/button.tsx';
import { Empty } from '../ui/empty.tsx';
import { PlusIcon } from '../ui/icons.tsx';
import { formatCount } from '../ui/numbers.ts';
import { Problem } from '../ui/problem.tsx';
import { Ago } from '../ui/time.tsx';
import { useAddress } from '../ui/use-address.ts';
import { useFirstRows, useReadOn } from '../ui/use-read-on.ts';
import { useTitle } from '../ui/use-title.ts';
import { Wait } from '../ui/wait.tsx';
import '../styles/operate.css';
import '../styles/projects.css';
import { More } from '../ui/more.tsx';
import { type Column, Table } from '../ui/table.tsx';

/** So few are seen at once, without a search. */
const FEW = 8;

/** Projects in which the user has a part, those that were changed last first. */
export function ProjectsPage() {
  useTitle('Projects');
  const list = useProjects();
  const { data, error } = list;
  const [search, change] = useAddress();
  const [isAdding, setAdding] = useState(false);
  const find = search.get('find') ?? '';
  const all = data?.pages.flatMap(page => page.items) ?? [];
  const isReading = useReadOn(list);
  const found = all
    .filter(({ name }) => name.toLowerCase().includes(find.toLowerCase()))
    .sort((a, b) => b.updated.localeCompare(a.updated));
  const { rows, more } = useFirstRows(found, list, isReading);
  const add = (
    <Button look="primary" onClick={() => setAdding(true)}>
      <PlusIcon />
      New project
    </Button>
  );
  return (
    <>
      <div class="page-head">
        <h1>Projects</h1>
        {all.length > 0 && add}
      </div>
      {all.length > FEW && (
        <div class="filters">
          <input
            class="input"
            type="search"
            aria-label="Names that contain"
            placeholder="Find by name"
            value={find}
            onInput={event => change({ find: event.currentTarget.value })}
          />
        </div>
      )}
      {error && <Problem error={error} />}
      {!data && !error && <Wait>Asking for your projects …</Wait>}
      {data && (
        <div class="card">
          {rows.length > 0 && <ProjectTable projects={rows} />}
          {all.length === 0 && (
            <Empty title="No project yet">
              <p>
                A project holds the data of a study: models with their tables, files and parameters,
                videos and bookmarks. Only those see it who have a part in it. Make one, and put a
                first file into it.
              </p>
              {add}
            </Empty>
          )}
          {isReading && <Wait>{`Looking on, after ${formatCount(all.length)} …`}</Wait>}
          {all.length > 0 && rows.length === 0 && !isReading && (
            <Empty title="No name contains that">
              <p>
                {list.hasNextPage && `None of the first ${formatCount(all.length)}. `}
                Look for another part of it, or at <Link href="/projects">all projects</Link>.
              </p>
            </Empty>
          )}
          <More list={more}>More projects</More>
        </div>
      )}
      {isAdding && <NewProjectDialog onClose={() => setAdding(false)} />}
    </>
  );
}

const ProjectTable = ({ projects }: { projects: ProjectSummary[] }) => (
  <Table label="Projects" look="listing" rows={projects} keyOf={({ id }) => id} columns={COLUMNS} />
);

const COLUMNS: Column<ProjectSummary>[] = [
  {
    name: 'Project',
    cell: ({ id, name, description }) => (
      <>
        <Link class="job-link ellipsis" href={`/projects/${id}/models`} title={name}>
          {name}
        </Link>
        {description !== '' && <span class="muted ellipsis below">{description}</span>}
      </>
    ),
  },
  { name: 'You are', cell: ({ role }) => ROLES[role].name },
  { name: 'Changed', cell: ({ updated }) => <Ago at={updated} /> },
];
