import { useState } from 'preact/hooks';
import { Link } from 'wouter-preact';
import { type Artifact, useModel } from '../service/models.ts';
import { canWrite } from '../service/projects.ts';
import { Empty } from '../ui/empty.tsx';
import { PlusIcon, UploadIcon } from '../ui/icons.tsx';
import { More } from '../ui/more.tsx';
import { useAddress } from '../ui/use-address.ts';
import { ArtifactTable } from './artifact-table.tsx';
import type { ModelPartProps } from './model-part.ts';
import { Parses } from './parses.tsx';
import { RemoveArtifact } from './remove-artifact.tsx';

const FEW = 10;

/** What is in a model, and what became of the files that were uploaded into it. */
export function Content({ project, model }: ModelPartProps) {
  const list = useModel(model.id);
  const { data } = list;
  const [search, change] = useAddress();
  const [removed, setRemoved] = useState<Artifact>();
  const all = data?.pages.flatMap(page => page.artifacts) ?? [];
  const find = search.get('find') ?? '';
  const shown = all.filter(({ aid }) => aid.toLowerCase().includes(find.toLowerCase()));
  const base = `/projects/${project.id}/models/${model.id}`;
  const isWriter = canWrite(project);
  return (
    <>
      <div class="page-head">
        <h2>Content</h2>
        {isWriter && (
          <div class="row">
            <Link class="button" href={`${base}/parameter`}>
              <PlusIcon />
              New parameter
            </Link>
            <Link class="button" data-look="primary" href={`${base}/upload`}>
              <UploadIcon />
              Upload files
            </Link>
          </div>
        )}
      </div>
      {(all.length > FEW || find !== '') && (
        <div class="filters">
          <input
            class="input"
            type="search"
            aria-label="Names that contain"
            placeholder="Find by name"
            value={find}
            onInput={event => change({ find: event.currentTarget.value })}
          />
        </div>
      )}
      <div class="card">
        {shown.length > 0 && (
          <ArtifactTable
            base={base}
            mid={model.id}
            artifacts={shown}
            onRemove={isWriter ? setRemoved : undefined}
          />
        )}
        {all.length === 0 && (
          <Empty title="Nothing is in it yet">
            <p>
              {isWriter
                ? 'Upload files: tables are read, and can be sorted, plotted and downloaded. Or store a parameter: a number, a text or any other JSON.'
                : 'Its writers have put nothing into it so far.'}
            </p>
          </Empty>
        )}
        {all.length > 0 && shown.length === 0 && (
          <Empty title="No name contains that">
            <p>Look for another part of it.</p>
          </Empty>
        )}
        <More list={list}>More of its content</More>
      </div>
      <Parses parses={model.parses} />
      {removed && (
        <RemoveArtifact mid={model.id} artifact={removed} onClose={() => setRemoved(undefined)} />
      )}
    </>
  );
}
