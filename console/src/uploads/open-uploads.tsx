import { useState } from 'preact/hooks';
import { rememberedFiles } from '../service/remembered-uploads.ts';
import { addUpload, uploadTransfers } from '../service/upload-transfers.ts';
import {
  openUploadsChanged,
  type Upload,
  type UploadTransfer,
  useAbandonUpload,
  useOpenUploads,
} from '../service/uploads.ts';
import { formatBytes } from '../ui/format-bytes.ts';
import { Problem } from '../ui/problem.tsx';
import { Ago } from '../ui/time.tsx';
import { FileButton } from './drop-zone.tsx';
import type { NamedFile } from './dropped-files.ts';
import { GiveUp } from './give-up.tsx';

/** Uploads that were begun before, by this page before it was loaded again or elsewhere: they go on with the same files. */
export function OpenUploads({ mid, present }: { mid: string; present: UploadTransfer[] }) {
  const { data, error } = useOpenUploads(mid);
  const ours = new Set(uploadTransfers.list.map(({ uid }) => uid));
  if (error) return <Problem error={error} />;
  const left = data?.filter(({ id }) => !ours.has(id)) ?? [];
  // Redrawn with the uploads of this page.
  if (left.length === 0) return present && null;
  return (
    <section class="card" aria-label="Begun before">
      <div class="card-head">
        <h2>Begun before</h2>
      </div>
      <ul class="parses">
        {left.map(upload => (
          <OpenUpload key={upload.id} upload={upload} />
        ))}
      </ul>
    </section>
  );
}

function OpenUpload({ upload }: { upload: Upload }) {
  const { id, mid, parser, aids, parts, created } = upload;
  const abandon = useAbandonUpload(mid);
  const [problem, setProblem] = useState<string>();
  const arrived = parts.reduce((sum, { size }) => sum + size, 0);
  const known = rememberedFiles(id);
  const total = known?.reduce((sum, { size }) => sum + size, 0);
  const names = aids.join(', ');
  const goOn = (chosen: NamedFile[]) => {
    const byName = (aid: string) =>
      chosen.find(({ name }) => name === aid) ?? chosen.find(({ file }) => file.name === aid);
    // A program may have begun it under another name. Digests of what has arrived tell whether the file is the same.
    const only = aids.length === 1 && chosen.length === 1 ? chosen[0] : undefined;
    const files = aids.map(aid => only ?? byName(aid));
    const missing = aids.filter((_, n) => files[n] === undefined);
    const others = aids.filter((aid, n) => {
      const size = known?.find(file => file.aid === aid)?.size;
      return size !== undefined && files[n] !== undefined && files[n].file.size !== size;
    });
    if (missing.length > 0)
      return setProblem(
        aids.length === 1
          ? `Choose the file that was begun as ${names}, and no other.`
          : `No chosen file is called ${missing.join(', ')}.`,
      );
    if (others.length > 0)
      return setProblem(`Another size than what was begun: ${others.join(', ')}.`);
    const given = files.flatMap(one => (one ? [one.file] : []));
    addUpload({ mid, parser, aids, files: given, parameters: {} }, id);
  };
  return (
    <li>
      <div class="row">
        <span class="badge" data-state="queued">
          Not complete
        </span>
        <strong class="grow ellipsis" title={names}>
          {names}
        </strong>
        <span class="muted">
          {formatBytes(arrived)} {total === undefined ? 'arrived' : `of ${formatBytes(total)}`},
          begun <Ago at={created} />
        </span>
      </div>
      <div class="row">
        <span class="grow">
          A page keeps no files. Choose {aids.length === 1 ? 'the same file' : 'the same files'}{' '}
          again: what has arrived is not sent again.
        </span>
        <FileButton onFiles={goOn}>Choose and go on</FileButton>
        <GiveUp
          names={names}
          arrived={arrived}
          isPending={abandon.isPending}
          error={abandon.error}
          // Another page may be sending it: the question tells what is there by now.
          onAsk={() => void openUploadsChanged(mid)}
          onGiveUp={() => abandon.mutate(id)}
        />
      </div>
      {problem && <Problem error={problem} />}
    </li>
  );
}
