import type { TargetedSubmitEvent } from 'preact';
import { useState } from 'preact/hooks';
import { useLocation } from 'wouter-preact';
import { draftOfModel, type Model, useChangeModel, useDeleteModel } from '../service/models.ts';
import { canWrite } from '../service/projects.ts';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/confirm-dialog.tsx';
import { formatBytes } from '../ui/format-bytes.ts';
import { Time } from '../ui/time.tsx';
import type { ModelPartProps } from './model-part.ts';
import { NameFields } from './name-fields.tsx';
import { SaveTexts } from './save-texts.tsx';
import { useTexts } from './use-texts.ts';

/** A model's name and description, and its end. */
export function ModelSettings({ project, model }: ModelPartProps) {
  const isWriter = canWrite(project);
  return (
    <>
      <h2>Settings</h2>
      <ModelForm key={model.id} model={model} isWriter={isWriter} />
      {isWriter && <DeleteModel model={model} />}
    </>
  );
}

function ModelForm({ model, isWriter }: { model: Model; isWriter: boolean }) {
  const { id, name, description, marking } = model;
  const change = useChangeModel(model);
  const form = useTexts(draftOfModel(id), { name, description, marking });
  const save = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    change.mutate(form.change, { onSuccess: form.drop });
  };
  return (
    <form class="card card-body narrow" onSubmit={save} autocomplete="off">
      <fieldset class="form bare" aria-label="Model" disabled={!isWriter}>
        <NameFields form={form} isPending={change.isPending} />
        <label class="field">
          <span>Marking</span>
          <input class="input" readOnly={change.isPending} {...form.field('marking')} />
          <small>Such as who may see it: your programs say what it means.</small>
        </label>
      </fieldset>
      <p class="muted break">
        Made <Time at={model.created} />, of type {model['model-type']}. Its id is <code>{id}</code>
        .
      </p>
      {isWriter && <SaveTexts form={form} saving={change} />}
    </form>
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
