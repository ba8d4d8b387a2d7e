import { useLocation } from 'wouter-preact';
import { useCreateProject } from '../service/projects.ts';
import { Dialog } from '../ui/dialog.tsx';
import { DialogForm } from '../ui/dialog-form.tsx';

export function NewProjectDialog({ onClose }: { onClose: () => void }) {
  const create = useCreateProject();
  const [, navigate] = useLocation();
  const send = (fields: FormData) => {
    const body = {
      name: String(fields.get('name')).trim(),
      description: String(fields.get('description')).trim(),
    };
    create.mutate(body, { onSuccess: pid => navigate(`/projects/${pid}/models`) });
  };
  return (
    <Dialog title="New project" onClose={onClose}>
      <DialogForm
        action="Make the project"
        sending={create}
        makes="project"
        onSend={send}
        onClose={onClose}
        autocomplete="off"
      >
        <label class="field">
          <span>Name</span>
          <input class="input" name="name" required autofocus />
        </label>
        <label class="field">
          <span>Description</span>
          <textarea class="input" name="description" rows={3} />
        </label>
        <p class="muted">You are its administrator, and alone in it until you add others.</p>
      </DialogForm>
    </Dialog>
  );
}
