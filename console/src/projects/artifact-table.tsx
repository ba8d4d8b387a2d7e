import { Link } from 'wouter-preact';
import { type Artifact, artifactPath, downloadName } from '../service/models.ts';
import { apiPath } from '../service/place.ts';
import { Button } from '../ui/button.tsx';
import { formatBytes } from '../ui/format-bytes.ts';
import { DownloadIcon } from '../ui/icons.tsx';
import { type Column, Table } from '../ui/table.tsx';
import { Ago } from '../ui/time.tsx';

interface ArtifactTableProps {
  /** The address of the model's page. */
  base: string;
  mid: string;
  artifacts: Artifact[];
  /** Undefined where the user may not. */
  onRemove: ((artifact: Artifact) => void) | undefined;
}

const KINDS: Record<Artifact['type'], string> = {
  table: 'Table',
  array: 'Array',
  file: 'File',
  parameter: 'Parameter',
};
/** Files have nothing but their bytes: they are downloaded. */
const HAS_PAGE: Artifact['type'][] = ['parameter', 'table', 'array'];

export const ArtifactTable = ({ base, mid, artifacts, onRemove }: ArtifactTableProps) => (
  <Table
    label="Content"
    look="artifacts"
    rows={artifacts}
    keyOf={({ aid }) => aid}
    columns={[
      {
        name: 'Name',
        look: 'ellipsis',
        title: ({ aid }) => aid,
        cell: ({ aid, type }) =>
          HAS_PAGE.includes(type) ? (
            <Link href={`${base}/${type}?name=${encodeURIComponent(aid)}`}>{aid}</Link>
          ) : (
            aid
          ),
      },
      ...COLUMNS,
    ]}
    actions={artifact => (
      <>
        <a
          class="button"
          data-size="small"
          href={apiPath(artifactPath(mid, artifact))}
          download={downloadName(artifact)}
          aria-label={`Download ${artifact.aid}`}
          title={`Download ${downloadName(artifact)}`}
        >
          <DownloadIcon />
        </a>{' '}
        {onRemove && (
          <Button
            size="small"
            aria-label={`Remove ${artifact.aid}`}
            onClick={() => onRemove(artifact)}
          >
            Remove
          </Button>
        )}
      </>
    )}
  />
);

const COLUMNS: Column<Artifact>[] = [
  {
    name: 'Kind',
    cell: ({ type, input }) => (
      <>
        {KINDS[type]}
        {input && <span class="muted">, an input</span>}
      </>
    ),
  },
  { name: 'Size', look: 'numbers', cell: ({ size }) => formatBytes(size) },
  { name: 'Changed', cell: ({ updated }) => <Ago at={updated} /> },
];
