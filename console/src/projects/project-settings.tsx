import type { TargetedSubmitEvent } from 'preact';
import { useState } from 'preact/hooks';
import { useLocation } from 'wouter-preact';
import { useModels } from '../service/models.ts';
import {
  canWrite,
  draftOfProject,
  type Project,
  useCache,
  useChangeProject,
  useDeleteProject,
} from '../service/projects.ts';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/confirm-dialog.tsx';
import { formatCount } from '../ui/numbers.ts';
import { Time } from '../ui/time.tsx';
import { NameFields } from './name-fields.tsx';
import { SaveTexts } from './save-texts.tsx';
import { useTexts } from './use-texts.ts';

/** A project's name and description, and its end. */
export const ProjectSettings = ({ project }: { project: Project }) => (
  <>
    <h2>Settings</h2>
    <ProjectForm key={project.id} project={project} />
    {project.role === 'administrator' && <DeleteProject project={project} />}
  </>
);

function ProjectForm({ project }: { project: Project }) {
  const { id, name, description, created } = project;
  const change = useChangeProject(id);
  const form = useTexts(draftOfProject(id), { name, description });
  const save = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    change.mutate(form.change, { onSuccess: form.drop });
  };
  return (
    <form class="card card-body narrow" onSubmit={save} autocomplete="off">
      <fieldset class="form bare" aria-label="Project" disabled={!canWrite(project)}>
        <NameFields form={form} isPending={change.isPending} />
      </fieldset>
      <p class="muted">
        Made <Time at={created} />. Its id is <code>{id}</code>.
      </p>
      {canWrite(project) && <SaveTexts form={form} saving={change} />}
    </form>
  );
}

function DeleteProject({ project: { id, name } }: { project: Project }) {
  const remove = useDeleteProject(id);
  const models = useModels(id);
  const videos = useCache(id);
  const [, navigate] = useLocation();
  const [isAsking, setAsking] = useState(false);
  const count = (
    { data, hasNextPage }: Pick<typeof models | typeof videos, 'hasNextPage'> & { data?: Counted },
    [one, many]: [string, string],
  ) => {
    const found = data?.pages.reduce((sum, page) => sum + page.items.length, 0);
    if (found === undefined) return `its ${many}`;
    return `${formatCount(found)}${hasNextPage ? ' and more' : ''} ${found === 1 ? one : many}`;
  };
  return (
    <section class="card card-body narrow" aria-label="Delete">
      <div class="row">
        <p class="grow">
          Its models, tables, files, videos and bookmarks go with it, for everybody.
        </p>
        <Button look="danger" onClick={() => setAsking(true)}>
          Delete the project …
        </Button>
      </div>
      {isAsking && (
        <ConfirmDialog
          title="Delete this project?"
          action={`Delete ${name}`}
          isPending={remove.isPending}
          error={remove.error}
          onConfirm={() =>
            remove.mutate(undefined, { onSuccess: () => navigate('/projects', { replace: true }) })
          }
          onClose={() => setAsking(false)}
        >
          <p class="break">
            <strong>{name}</strong> goes with {count(models, ['model', 'models'])} and all that is
            in them, {count(videos, ['video', 'videos'])} and all bookmarks, for everybody who has a
            part in it. Uploads into it and jobs that work for it are cancelled. Nothing brings it
            back.
          </p>
        </ConfirmDialog>
      )}
    </section>
  );
}

interface Counted {
  pages: { items: unknown[] }[];
}
