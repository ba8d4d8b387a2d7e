import type { ComponentChildren, TargetedDragEvent } from 'preact';
import { useState } from 'preact/hooks';
import { Unread } from '../ui/unread.tsx';
import { chosenFiles, droppedFiles, type NamedFile } from './dropped-files.ts';

interface DropZoneProps {
  label: string;
  onFiles: (files: NamedFile[]) => void;
  children: ComponentChildren;
}

/** Takes files and folders: dropped on it, or chosen by its two buttons. */
export function DropZone({ label, onFiles, children }: DropZoneProps) {
  const [isOver, setOver] = useState(false);
  const [unread, setUnread] = useState<string[]>([]);
  const drop = async (event: TargetedDragEvent<HTMLElement>) => {
    event.preventDefault();
    setOver(false);
    if (!event.dataTransfer) return;
    const { files, unread: left } = await droppedFiles(event.dataTransfer);
    setUnread(left);
    if (files.length > 0) onFiles(files);
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
      <Unread paths={unread} onClose={() => setUnread([])} />
      {children}
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
