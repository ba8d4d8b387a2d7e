import type { ComponentChildren } from 'preact';
import { fileAddress } from '../service/files.ts';
import { extensionOf } from '../service/paths.ts';
import { Button } from '../ui/button.tsx';
import { formatBytes } from '../ui/format-bytes.ts';
import { CloseIcon, DownloadIcon } from '../ui/icons.tsx';
import { lazy } from '../ui/lazy.tsx';
import { Time } from '../ui/time.tsx';
import type { Entry } from './entries.ts';
import { imageType, isFrame } from './image-type.ts';
import { Picture } from './picture.tsx';
import { TextPreview } from './text-preview.tsx';

const ParquetPreview = lazy(async () => (await import('./parquet-preview.tsx')).ParquetPreview);

interface FilePreviewProps {
  sid: string;
  path: string;
  entry: Entry;
  onClose: () => void;
  /** More that can be done with it. */
  children?: ComponentChildren;
}

/** What is in a file: a picture, the first rows of a table, the beginning of a text. */
export function FilePreview({ sid, path, entry, onClose, children }: FilePreviewProps) {
  const { name, size, time } = entry;
  return (
    <section class="card preview" aria-label={name}>
      <div class="card-head">
        <h2 class="preview-name" title={name}>
          {name}
        </h2>
        <Button look="quiet" size="icon" aria-label="Close" title="Close" onClick={onClose}>
          <CloseIcon />
        </Button>
      </div>
      <div class="preview-about row">
        <span class="grow muted">
          {formatBytes(size)}, changed <Time at={time} />
        </span>
        {children}
        <a class="button" data-size="small" href={fileAddress(sid, path)} download={name}>
          <DownloadIcon />
          Download
        </a>
      </div>
      {imageType(name) !== undefined || isFrame(name) ? (
        <div class="preview-picture">
          <Picture key={`${size} ${time}`} sid={sid} path={path} entry={entry} />
        </div>
      ) : extensionOf(name) === 'parquet' && size > 0 ? (
        <ParquetPreview sid={sid} path={path} entry={entry} />
      ) : (
        <TextPreview sid={sid} path={path} entry={entry} />
      )}
    </section>
  );
}
