import { Link, Redirect } from 'wouter-preact';
import { Bookmarks } from '../projects/bookmarks.tsx';
import { Models } from '../projects/models.tsx';
import { People } from '../projects/people.tsx';
import { ProjectSettings } from '../projects/project-settings.tsx';
import { Videos } from '../projects/videos.tsx';
import { useProject } from '../service/projects.ts';
import type { CurrentUser } from '../service/user.ts';
import { Parts } from '../ui/parts.tsx';
import { Problem } from '../ui/problem.tsx';
import { useTitle } from '../ui/use-title.ts';
import { Wait } from '../ui/wait.tsx';
import { Missing } from './missing.tsx';
import '../styles/operate.css';
import '../styles/projects.css';
import '../styles/model.css';

const PARTS = [
  { part: 'models', name: 'Models', Part: Models },
  { part: 'bookmarks', name: 'Bookmarks', Part: Bookmarks },
  { part: 'videos', name: 'Videos', Part: Videos },
  { part: 'people', name: 'People', Part: People },
  { part: 'settings', name: 'Settings', Part: ProjectSettings },
];

interface ProjectPageProps {
  user: CurrentUser;
  pid: string;
  part: string;
}

/** What is in a project, and who has a part in it. */
export function ProjectPage({ user, pid, part }: ProjectPageProps) {
  const { data, error } = useProject(pid);
  const project = data?.record;
  useTitle(project?.name ?? 'Project');
  const found = PARTS.find(each => each.part === part);
  if (part === '') return <Redirect to={`/projects/${pid}/models`} replace />;
  if (!found) return <Missing />;
  if (!project)
    return (
      <>
        <h1>Project</h1>
        {error ? (
          <Problem error={error}>
            <Link href="/projects">All projects</Link>
          </Problem>
        ) : (
          <Wait>Asking for the project …</Wait>
        )}
      </>
    );
  const { Part } = found;
  return (
    <>
      <nav class="crumbs" aria-label="Where you are">
        <Link href="/projects">Projects</Link>
        <span aria-hidden="true">/</span>
        <span class="ellipsis">{project.name}</span>
      </nav>
      <div class="page-head">
        <h1 class="ellipsis" title={project.name}>
          {project.name}
        </h1>
        <Parts base={`/projects/${pid}`} parts={PARTS} />
      </div>
      {project.description !== '' && <p class="description">{project.description}</p>}
      {error && <Problem error={error} />}
      <Part project={project} tag={data.tag} user={user} />
    </>
  );
}
