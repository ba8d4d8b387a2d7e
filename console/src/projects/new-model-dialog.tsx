import { useLocation } from 'wouter-preact';
import { useCreateModel } from '../service/models.ts';
import { Dialog } from '../ui/dialog.tsx';
import { DialogForm } from '../ui/dialog-form.tsx';

export function NewModelDialog({ pid, onClose }: { pid: string; onClose: () => void }) {
  const create = useCreateModel(pid);
  const [, navigate] = useLocation();
  const send = (fields: FormData) => {
    const text = (name: string) => String(fields.get(name)).trim();
    const body = {
      name: text('name'),
      'model-type': text('type'),
      description: text('description'),
    };
    create.mutate(body, { onSuccess: mid => navigate(`/projects/${pid}/models/${mid}/content`) });
  };
  return (
    <Dialog title="New model" onClose={onClose}>
      <DialogForm
        action="Make the model"
        sending={create}
        makes="model"
        onSend={send}
        onClose={onClose}
        autocomplete="off"
      >
        <label class="field">
          <span>Name</span>
          <input class="input" name="name" required autofocus />
        </label>
        <label class="field">
          <span>Type</span>
          <input class="input" name="type" required defaultValue="data" />
          <small>A word of your own, by which your programs know what to expect in it.</small>
        </label>
        <label class="field">
          <span>Description</span>
          <textarea class="input" name="description" rows={3} />
        </label>
      </DialogForm>
    </Dialog>
  );
}
