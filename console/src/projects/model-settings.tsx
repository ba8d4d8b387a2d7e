import type { TargetedSubmitEvent } from 'preact';
import { useState } from 'preact/hooks';
import { useLocation } from 'wouter-preact';
import { type Model, useChangeModel, useDeleteModel } from '../service/models.ts';
import { canWrite } from '../service/projects.ts';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/confirm-dialog.tsx';
import { formatBytes } from '../ui/format-bytes.ts';
import { Problem } from '../ui/problem.tsx';
import { Time } from '../ui/time.tsx';
import type { ModelPartProps } from './model-part.ts';

/** A model's name and description, and its end. */
export function ModelSettings({ project, model }: ModelPartProps) {
  const change = useChangeModel(model);
  const isWriter = canWrite(project);
  const save = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    const text = (field: string) => String(fields.get(field)).trim();
    change.mutate({
      name: text('name'),
      description: text('description'),
      marking: text('marking'),
    });
  };
  return (
    <>
      <h2>Settings</h2>
      <form class="card card-body narrow" onSubmit={save} autocomplete="off">
        <fieldset class="form bare" aria-label="Model" disabled={!isWriter}>
          <label class="field">
            <span>Name</span>
            <input class="input" name="name" required defaultValue={model.name} />
          </label>
          <label class="field">
            <span>Description</span>
            <textarea class="input" name="description" rows={4} defaultValue={model.description} />
          </label>
          <label class="field">
            <span>Marking</span>
            <input class="input" name="marking" defaultValue={model.marking} />
            <small>Such as who may see it: your programs say what it means.</small>
          </label>
        </fieldset>
        <p class="muted break">
          Made <Time at={model.created} />, of type {model['model-type']}. Its id is{' '}
          <code>{model.id}</code>.
        </p>
        {change.error && <Problem error={change.error} />}
        {isWriter && (
          <div class="row">
            <Button type="submit" look="primary" disabled={change.isPending}>
              Save
            </Button>
            <span role="status">{change.isSuccess && 'Saved.'}</span>
          </div>
        )}
      </form>
      {isWriter && <DeleteModel model={model} />}
    </>
  );
}

function DeleteModel({ model }: { model: Model }) {
  const remove = useDeleteModel(model);
  const [, navigate] = useLocation();
  const [isAsking, setAsking] = useState(false);
  const { name, project, artifacts, next } = model;
  const bytes = artifacts.reduce((sum, { size }) => sum + size, 0);
  const more = next === null ? '' : ' and more';
  return (
    <section class="card card-body narrow" aria-label="Delete">
      <div class="row">
        <p class="grow">Its tables, files, arrays and parameters go with it, for everybody.</p>
        <Button look="danger" onClick={() => setAsking(true)}>
          Delete the model …
        </Button>
      </div>
      {isAsking && (
        <ConfirmDialog
          title="Delete this model?"
          action={`Delete ${name}`}
          isPending={remove.isPending}
          error={remove.error}
          onConfirm={() =>
            remove.mutate(undefined, {
              onSuccess: () => navigate(`/projects/${project}/models`, { replace: true }),
            })
          }
          onClose={() => setAsking(false)}
        >
          <p class="break">
            <strong>{name}</strong> goes with all that is in it: {artifacts.length}
            {more} of {formatBytes(bytes)}
            {more}. Uploads into it are cancelled. Nothing brings it back.
          </p>
        </ConfirmDialog>
      )}
    </section>
  );
}
