import { type Artifact, useRemoveArtifact } from '../service/models.ts';
import { ConfirmDialog } from '../ui/confirm-dialog.tsx';
import { formatBytes } from '../ui/format-bytes.ts';

interface RemoveArtifactProps {
  mid: string;
  artifact: Artifact;
  onClose: () => void;
}

export function RemoveArtifact({ mid, artifact, onClose }: RemoveArtifactProps) {
  const remove = useRemoveArtifact(mid);
  const { aid, type, size } = artifact;
  return (
    <ConfirmDialog
      title={`Remove this ${type}?`}
      action={`Remove the ${type}`}
      isPending={remove.isPending}
      error={remove.error}
      onConfirm={() => remove.mutate(artifact, { onSuccess: onClose })}
      onClose={onClose}
    >
      <p class="break">
        <strong>{aid}</strong> goes with its {formatBytes(size)}, for everybody in the project
        {type === 'table' && ', and the sorted and filtered views of it with it'}. Nothing brings it
        back.
      </p>
    </ConfirmDialog>
  );
}
