import { Link } from 'wouter-preact';
import { type Artifact, artifactPath, downloadName } from '../service/models.ts';
import { apiPath } from '../service/place.ts';
import { Button } from '../ui/button.tsx';
import { formatBytes } from '../ui/format-bytes.ts';
import { DownloadIcon } from '../ui/icons.tsx';
import { TableBox } from '../ui/table-box.tsx';
import { Ago } from '../ui/time.tsx';

interface ArtifactTableProps {
  /** The address of the model's page. */
  base: string;
  mid: string;
  artifacts: Artifact[];
  /** Undefined where the user may not. */
  onRemove: ((artifact: Artifact) => void) | undefined;
}

export const KINDS: Record<Artifact['type'], string> = {
  ...{ table: 'Table', array: 'Array', file: 'File', parameter: 'Parameter' },
};
/** Of files the bytes are all there is: they are downloaded. */
const HAS_PAGE: Artifact['type'][] = ['parameter', 'table', 'array'];

export const ArtifactTable = ({ base, mid, artifacts, onRemove }: ArtifactTableProps) => (
  <TableBox label="Content">
    <table class="plain artifacts">
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Kind</th>
          <th scope="col">Size</th>
          <th scope="col">Changed</th>
          <th scope="col">
            <span class="visually-hidden">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {artifacts.map(artifact => {
          const { aid, type, size, input, updated } = artifact;
          return (
            <tr key={aid}>
              <th scope="row" class="ellipsis" title={aid}>
                {HAS_PAGE.includes(type) ? (
                  <Link href={`${base}/${type}?name=${encodeURIComponent(aid)}`}>{aid}</Link>
                ) : (
                  aid
                )}
              </th>
              <td>
                {KINDS[type]}
                {input && <span class="muted">, an input</span>}
              </td>
              <td class="numbers">{formatBytes(size)}</td>
              <td>
                <Ago at={updated} />
              </td>
              <td class="actions">
                <a
                  class="button"
                  data-size="small"
                  href={apiPath(artifactPath(mid, artifact))}
                  download={downloadName(artifact)}
                  aria-label={`Download ${aid}`}
                  title={`Download ${downloadName(artifact)}`}
                >
                  <DownloadIcon />
                </a>{' '}
                {onRemove && (
                  <Button
                    size="small"
                    aria-label={`Remove ${aid}`}
                    onClick={() => onRemove(artifact)}
                  >
                    Remove
                  </Button>
                )}
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  </TableBox>
);
