import { useState } from 'preact/hooks';
import { useRemoveFile } from '../service/files.ts';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/confirm-dialog.tsx';
import { formatBytes } from '../ui/format-bytes.ts';
import type { Entry } from './entries.ts';

interface RemoveFileProps {
  sid: string;
  hostname: string;
  path: string;
  entry: Entry;
  onRemoved: () => void;
}

/** Removes a file on a host, once that is meant. */
export function RemoveFile({ sid, hostname, path, entry, onRemoved }: RemoveFileProps) {
  const [isAsked, ask] = useState(false);
  const remove = useRemoveFile(sid);
  return (
    <>
      <Button size="small" look="danger" onClick={() => ask(true)}>
        Delete
      </Button>
      {isAsked && (
        <ConfirmDialog
          title={`Delete ${entry.name}?`}
          action={remove.isPending ? 'Deleting …' : 'Delete it'}
          isPending={remove.isPending}
          error={remove.error}
          onConfirm={() => remove.mutate(path, { onSuccess: onRemoved })}
          onClose={() => ask(false)}
        >
          <p>
            <code>{path}</code>, {formatBytes(entry.size)}, is deleted on {hostname} for good: there
            is no bin. Of a link the link goes, and what it leads to stays.
          </p>
        </ConfirmDialog>
      )}
    </>
  );
}
