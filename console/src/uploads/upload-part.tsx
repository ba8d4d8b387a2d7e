import { useState } from 'preact/hooks';
import type { ModelPartProps } from '../projects/model-part.ts';
import { useAllArtifacts, useModel } from '../service/models.ts';
import { canWrite } from '../service/projects.ts';
import { useUploadTransfers } from '../service/uploads.ts';
import { Empty } from '../ui/empty.tsx';
import { UploadIcon } from '../ui/icons.tsx';
import { DropZone } from './drop-zone.tsx';
import type { NamedFile } from './dropped-files.ts';
import { OpenUploads } from './open-uploads.tsx';
import { Staging } from './staging.tsx';
import { UploadTransferList } from './upload-transfer-list.tsx';

/** Files into a model. */
export function UploadPart({ project, model }: ModelPartProps) {
  const [staged, stage] = useState<NamedFile[]>([]);
  const present = useUploadTransfers(model.id);
  const pages = useModel(model.id);
  const isPart = pages.hasNextPage && staged.length > 0;
  const all = useAllArtifacts(model.id, { enabled: isPart });
  const known =
    (isPart ? all.data : undefined) ??
    pages.data?.pages.flatMap(({ artifacts }) => artifacts) ??
    [];
  const add = (files: NamedFile[]) => {
    const names = new Set(files.map(({ name }) => name));
    stage(before => [...before.filter(({ name }) => !names.has(name)), ...files]);
  };
  if (!canWrite(project))
    return (
      <div class="card">
        <Empty title="For writers of the project">
          <p>You read it. One of its administrators can make you a writer, under People.</p>
        </Empty>
      </div>
    );
  return (
    <>
      <h2>Upload</h2>
      <DropZone label="Drop files here" onFiles={add}>
        <UploadIcon />
        <p>
          <strong>Drop files or folders here.</strong>
        </p>
        <p class="muted drop-zone-reads">
          CSV, Excel, Parquet, JSON, NumPy, HDF5 and netCDF become tables and arrays, also in a ZIP;
          everything else is kept as it is.
        </p>
      </DropZone>
      {staged.length > 0 && (
        <Staging mid={model.id} files={staged} known={known} onChange={stage} />
      )}
      <UploadTransferList list={present} />
      <OpenUploads mid={model.id} present={present} />
    </>
  );
}
