import type { ComponentType } from 'preact';
import { Link, Redirect } from 'wouter-preact';
import { Content } from '../projects/content.tsx';
import type { ModelPartProps } from '../projects/model-part.ts';
import { ModelSettings } from '../projects/model-settings.tsx';
import { ParameterPart } from '../projects/parameter.tsx';
import { useModel } from '../service/models.ts';
import { canWrite, useProject } from '../service/projects.ts';
import { lazy } from '../ui/lazy.tsx';
import { Parts } from '../ui/parts.tsx';
import { Problem } from '../ui/problem.tsx';
import { useAddress } from '../ui/use-address.ts';
import { useTitle } from '../ui/use-title.ts';
import { Wait } from '../ui/wait.tsx';
import { UploadPart } from '../uploads/upload-part.tsx';
import { Missing } from './missing.tsx';
import '../styles/operate.css';
import '../styles/projects.css';
import '../styles/model.css';

const TablePart = lazy(async () => (await import('../tables/table-part.tsx')).TablePart);
const ArrayPart = lazy(async () => (await import('../arrays/array-part.tsx')).ArrayPart);

const PARTS = [
  { part: 'content', name: 'Content' },
  { part: 'upload', name: 'Upload' },
  { part: 'settings', name: 'Settings' },
];
const SHOWN: Record<string, ComponentType<ModelPartProps>> = {
  array: ArrayPart,
  content: Content,
  parameter: ParameterPart,
  settings: ModelSettings,
  table: TablePart,
  upload: UploadPart,
};

interface ModelPageProps {
  pid: string;
  mid: string;
  part: string;
}

/** A model of a project, or an artifact in it. */
export function ModelPage({ pid, mid, part }: ModelPageProps) {
  const project = useProject(pid);
  const pages = useModel(mid);
  const [search] = useAddress();
  const model = pages.data?.pages[0];
  const name = search.get('name') ?? undefined;
  useTitle([name, model?.name ?? 'Model'].filter(Boolean).join(' · '));
  if (part === '') return <Redirect to={`/projects/${pid}/models/${mid}/content`} replace />;
  // `part` is from the address, and may name what every object inherits.
  const Part = Object.hasOwn(SHOWN, part) ? SHOWN[part] : undefined;
  if (!Part) return <Missing />;
  const error = project.error ?? pages.error;
  if (!model || !project.data)
    return (
      <>
        <h1>Model</h1>
        {error ? (
          <Problem error={error}>
            <Link href={`/projects/${pid}/models`}>All models of the project</Link>
          </Problem>
        ) : (
          <Wait>Asking for the model …</Wait>
        )}
      </>
    );
  const { record } = project.data;
  const base = `/projects/${pid}/models/${mid}`;
  const isArtifact = !PARTS.some(each => each.part === part);
  return (
    <>
      <nav class="crumbs" aria-label="Where you are">
        <Link href="/projects">Projects</Link>
        <span aria-hidden="true">/</span>
        <Link class="ellipsis" href={`/projects/${pid}/models`}>
          {record.name}
        </Link>
        {isArtifact && (
          <>
            <span aria-hidden="true">/</span>
            <Link class="ellipsis" href={`${base}/content`}>
              {model.name}
            </Link>
          </>
        )}
      </nav>
      {!isArtifact && (
        <>
          <div class="page-head">
            <h1 class="ellipsis" title={model.name}>
              {model.name}
            </h1>
            <Parts
              base={base}
              parts={PARTS.filter(each => each.part !== 'upload' || canWrite(record))}
            />
          </div>
          {model.description !== '' && <p class="description">{model.description}</p>}
        </>
      )}
      {error && <Problem error={error} />}
      <Part project={record} model={model} name={name} />
    </>
  );
}
