import type { TargetedSubmitEvent } from 'preact';
import { useLocation } from 'wouter-preact';
import { useCreateProject } from '../service/projects.ts';
import { Button } from '../ui/button.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { Problem } from '../ui/problem.tsx';

export function NewProjectDialog({ onClose }: { onClose: () => void }) {
  const create = useCreateProject();
  const [, navigate] = useLocation();
  const send = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    const body = {
      name: String(fields.get('name')).trim(),
      description: String(fields.get('description')).trim(),
    };
    create.mutate(body, { onSuccess: pid => navigate(`/projects/${pid}/models`) });
  };
  return (
    <Dialog title="New project" onClose={onClose}>
      <form class="form" onSubmit={send} autocomplete="off">
        <label class="field">
          <span>Name</span>
          <input class="input" name="name" required autofocus />
        </label>
        <label class="field">
          <span>Description</span>
          <textarea class="input" name="description" rows={3} />
        </label>
        <p class="muted">You are its administrator, and alone in it until you add others.</p>
        {create.error && <Problem error={create.error} />}
        <div class="dialog-end">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" disabled={create.isPending}>
            Make the project
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
