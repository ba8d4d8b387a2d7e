import { useState } from 'preact/hooks';
import { apiPath, downloadPath } from '../service/place.ts';
import {
  type CacheEntry,
  canWrite,
  type Project,
  useCache,
  useRemoveCached,
} from '../service/projects.ts';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/confirm-dialog.tsx';
import { formatBytes } from '../ui/format-bytes.ts';
import { DownloadIcon, PlayIcon } from '../ui/icons.tsx';
import { ListSection } from '../ui/list-section.tsx';
import { More } from '../ui/more.tsx';
import { type Column, Table } from '../ui/table.tsx';
import { Time } from '../ui/time.tsx';
import { useAddress } from '../ui/use-address.ts';
import { Player } from '../video/player.tsx';
import '../styles/video.css';
import { formatCount } from '../ui/numbers.ts';

/** The videos that are kept in a project. The one that is shown stands in the address. */
export function Videos({ project }: { project: Project }) {
  const list = useCache(project.id);
  const { data, error } = list;
  const [search, change] = useAddress();
  const [removed, setRemoved] = useState<CacheEntry>();
  const entries = data?.pages.flatMap(page => page.items);
  const shown = entries?.find(({ key }) => key === search.get('video'));
  const pathOf = ({ key }: CacheEntry) => `projects/${project.id}/cache/${encodeURIComponent(key)}`;
  return (
    <>
      <ListSection
        title="Videos"
        what="its videos"
        items={entries}
        error={error}
        empty={{
          title: 'No video is kept here',
          words:
            'A video that is made of frames on a host is kept for a day, and longer in a project: name the project and a key for it where you make the video.',
        }}
        shown={
          shown && (
            <>
              <h3 class="break">{shown.key}</h3>
              <Shown key={shown.key} address={apiPath(pathOf(shown))} frames={shown.frames} />
            </>
          )
        }
      >
        {present => (
          <>
            <VideoTable
              entries={present}
              pathOf={pathOf}
              onPlay={key => change({ video: key })}
              onRemove={canWrite(project) ? setRemoved : undefined}
            />
            <More list={list}>More videos</More>
          </>
        )}
      </ListSection>
      {removed && (
        <RemoveVideo pid={project.id} entry={removed} onClose={() => setRemoved(undefined)} />
      )}
    </>
  );
}

interface VideoTableProps {
  entries: CacheEntry[];
  /** The path of an entry's bytes. */
  pathOf: (entry: CacheEntry) => string;
  onPlay: (key: string) => void;
  /** Undefined where the user may not remove entries. */
  onRemove: ((entry: CacheEntry) => void) | undefined;
}

const VideoTable = ({ entries, pathOf, onPlay, onRemove }: VideoTableProps) => (
  <Table
    label="Videos"
    rows={entries}
    keyOf={({ key }) => key}
    columns={COLUMNS}
    actions={entry => (
      <>
        <Button size="small" aria-label={`Play ${entry.key}`} onClick={() => onPlay(entry.key)}>
          <PlayIcon />
          Play
        </Button>{' '}
        <a
          class="button"
          data-size="small"
          href={downloadPath(pathOf(entry), nameOf(entry))}
          download
          aria-label={`Download ${entry.key}`}
        >
          <DownloadIcon />
        </a>{' '}
        {onRemove && (
          <Button size="small" aria-label={`Remove ${entry.key}`} onClick={() => onRemove(entry)}>
            Remove
          </Button>
        )}
      </>
    )}
  />
);

const COLUMNS: Column<CacheEntry>[] = [
  { name: 'Key', look: 'ellipsis', title: ({ key }) => key, cell: ({ key }) => key },
  { name: 'Type', cell: ({ type }) => type },
  { name: 'Size', look: 'numbers', cell: ({ size }) => formatBytes(size) },
  { name: 'Frames', look: 'numbers', cell: ({ frames }) => frames && formatCount(frames) },
  { name: 'Kept since', cell: ({ created }) => <Time at={created} /> },
];

/** A video, frame by frame where their number is known. */
const Shown = ({ address, frames }: { address: string; frames: number | null }) =>
  frames === null ? (
    <section class="card player" aria-label="Video">
      {/* biome-ignore lint/a11y/useMediaCaption: frames of a simulation have no sound. */}
      <video controls autoPlay src={address} />
    </section>
  ) : (
    <Player address={address} frames={frames} gone="It was removed from the project." autoPlay />
  );

interface RemoveVideoProps {
  pid: string;
  entry: CacheEntry;
  onClose: () => void;
}

function RemoveVideo({ pid, entry: { key }, onClose }: RemoveVideoProps) {
  const remove = useRemoveCached(pid);
  return (
    <ConfirmDialog
      title="Remove this video?"
      action="Remove the video"
      isPending={remove.isPending}
      error={remove.error}
      onConfirm={() => remove.mutate(key, { onSuccess: onClose })}
      onClose={onClose}
    >
      <p class="break">
        <strong>{key}</strong> goes from the project, for everybody in it. It can be made again from
        its frames, as long as these are on their host.
      </p>
    </ConfirmDialog>
  );
}

/** The last part of its key, which may end otherwise than files of its type. */
function nameOf({ key, type }: CacheEntry): string {
  const name = key.split('/').at(-1) || 'video';
  const ending = type === 'video/webm' ? '.webm' : '.mp4';
  return name.endsWith(ending) ? name : `${name}${ending}`;
}
