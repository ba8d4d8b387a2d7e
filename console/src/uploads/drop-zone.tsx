import type { ComponentChildren, TargetedDragEvent } from 'preact';
import { useState } from 'preact/hooks';
import { type Drop, readDropped } from '../service/dropped.ts';
import { DropProblem } from '../ui/drop-problem.tsx';
import { useStayOnDrop } from '../ui/use-stay-on-drop.ts';
import { chosenFiles, type NamedFile, tidy } from './dropped-files.ts';

interface DropZoneProps {
  label: string;
  onFiles: (files: NamedFile[]) => void;
  children: ComponentChildren;
}

/** Takes files and folders: dropped on it, or chosen by its two buttons. */
export function DropZone({ label, onFiles, children }: DropZoneProps) {
  const [isOver, setOver] = useState(false);
  const [dropped, setDropped] = useState<Drop>();
  useStayOnDrop();
  const drop = async (event: TargetedDragEvent<HTMLElement>) => {
    event.preventDefault();
    setOver(false);
    if (!event.dataTransfer) return;
    const read = await readDropped(event.dataTransfer);
    setDropped(read);
    onFiles(tidy(read.files));
  };
  return (
    <section
      class="card drop-zone"
      aria-label={label}
      data-over={isOver}
      onDragOver={event => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      {children}
      {dropped && <DropProblem {...dropped} onClose={() => setDropped(undefined)} />}
      <div class="row">
        <FileButton onFiles={onFiles}>Choose files</FileButton>
        <FileButton isFolder onFiles={onFiles}>
          Choose a folder
        </FileButton>
      </div>
    </section>
  );
}

interface FileButtonProps {
  isFolder?: boolean;
  onFiles: (files: NamedFile[]) => void;
  children: string;
}

export const FileButton = ({ isFolder, onFiles, children }: FileButtonProps) => (
  <label class="button file-button">
    <input
      class="visually-hidden"
      type="file"
      multiple
      {...(isFolder && { webkitdirectory: true })}
      onChange={event => {
        onFiles(chosenFiles(event.currentTarget.files ?? []));
        event.currentTarget.value = '';
      }}
    />
    {children}
  </label>
);
