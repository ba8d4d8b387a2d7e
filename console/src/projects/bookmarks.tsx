import { useState } from 'preact/hooks';
import {
  type Bookmark,
  draftOfBookmark,
  useBookmark,
  useBookmarks,
  useRemoveBookmark,
  useStoreBookmark,
} from '../service/bookmarks.ts';
import { useDraft } from '../service/drafts.ts';
import { canWrite, type Project } from '../service/projects.ts';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/confirm-dialog.tsx';
import { formatBytes } from '../ui/format-bytes.ts';
import { PlusIcon } from '../ui/icons.tsx';
import { ListSection } from '../ui/list-section.tsx';
import { More } from '../ui/more.tsx';
import { Problem } from '../ui/problem.tsx';
import { type Column, Table } from '../ui/table.tsx';
import { Time } from '../ui/time.tsx';
import { useAddress } from '../ui/use-address.ts';
import { Wait } from '../ui/wait.tsx';
import { JsonEditor } from './json-editor.tsx';
import { formatJson, readJson } from './json-text.ts';

/** States that programs stored in a project. The one that is looked at stands in the address; `new` makes one. */
export function Bookmarks({ project }: { project: Project }) {
  const list = useBookmarks(project.id);
  const { data, error } = list;
  const [search, change] = useAddress();
  const [removed, setRemoved] = useState<Bookmark>();
  const bookmarks = data?.pages
    .flatMap(page => page.items)
    .sort((a, b) => b.created.localeCompare(a.created));
  const chosen = search.get('bookmark') ?? undefined;
  const isWriter = canWrite(project);
  const open = (bookmark: string | undefined) => change({ bookmark });
  const add = isWriter && (
    <Button look="primary" onClick={() => open('new')}>
      <PlusIcon />
      New bookmark
    </Button>
  );
  return (
    <>
      <ListSection
        title="Bookmarks"
        what="its bookmarks"
        items={bookmarks}
        error={error}
        add={chosen !== 'new' && add}
        empty={{
          title: 'No bookmark yet',
          words:
            'A bookmark is a state of a program that shows the project, such as what was selected and how far it was zoomed. Programs store them, and open them by their ids.',
        }}
        shown={
          <>
            {chosen === 'new' && isWriter && <NewBookmark pid={project.id} onStored={open} />}
            {chosen !== undefined && chosen !== 'new' && <Shown key={chosen} bid={chosen} />}
          </>
        }
      >
        {present => (
          <>
            <BookmarkTable
              bookmarks={present}
              chosen={chosen}
              onOpen={open}
              onRemove={isWriter ? setRemoved : undefined}
            />
            <More list={list}>More bookmarks</More>
          </>
        )}
      </ListSection>
      {removed && (
        <RemoveBookmark
          pid={project.id}
          bookmark={removed}
          onClose={() => {
            setRemoved(undefined);
            if (removed.id === chosen) open(undefined);
          }}
        />
      )}
    </>
  );
}

interface BookmarkTableProps {
  bookmarks: Bookmark[];
  /** The id of the one that is looked at. */
  chosen: string | undefined;
  onOpen: (bid: string) => void;
  /** Undefined for who may not. */
  onRemove: ((bookmark: Bookmark) => void) | undefined;
}

const BookmarkTable = ({ bookmarks, chosen, onOpen, onRemove }: BookmarkTableProps) => (
  <Table
    label="Bookmarks"
    rows={bookmarks}
    keyOf={({ id }) => id}
    isChosen={({ id }) => id === chosen}
    columns={COLUMNS}
    actions={bookmark => (
      <>
        <Button
          size="small"
          aria-label={`Look at ${bookmark.id}`}
          onClick={() => onOpen(bookmark.id)}
        >
          Look
        </Button>{' '}
        {onRemove && (
          <Button
            size="small"
            aria-label={`Remove ${bookmark.id}`}
            onClick={() => onRemove(bookmark)}
          >
            Remove
          </Button>
        )}
      </>
    )}
  />
);

const COLUMNS: Column<Bookmark>[] = [
  { name: 'Bookmark', look: 'mono', cell: ({ id }) => id },
  { name: 'Size', look: 'numbers', cell: ({ size }) => formatBytes(size) },
  { name: 'Stored', cell: ({ created }) => <Time at={created} /> },
];

function Shown({ bid }: { bid: string }) {
  const { data, error } = useBookmark(bid);
  const [isFormatted, setFormatted] = useState(false);
  if (error) return <Problem error={error} />;
  if (data === undefined) return <Wait>Reading the bookmark …</Wait>;
  return (
    <section class="card" aria-label="What is in it">
      <div class="card-head">
        <h3 class="mono ellipsis">{bid}</h3>
        <Button size="small" aria-pressed={isFormatted} onClick={() => setFormatted(!isFormatted)}>
          One member a line
        </Button>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it is scrolled by keys, too. */}
      <section class="preview-text" aria-label="JSON" tabIndex={0}>
        <pre class="break">{isFormatted ? formatJson(data) : data}</pre>
      </section>
    </section>
  );
}

function NewBookmark({ pid, onStored }: { pid: string; onStored: (bid: string) => void }) {
  const store = useStoreBookmark(pid);
  const { draft, change, drop } = useDraft<string>(draftOfBookmark(pid), '{\n  \n}', Object.is);
  const isObject = draft.trimStart().startsWith('{') && readJson(draft).error === undefined;
  return (
    <section class="form" aria-label="New bookmark">
      {/* What is typed meanwhile would be dropped with what is stored. */}
      <JsonEditor
        label="State, a JSON object"
        text={draft}
        onChange={change}
        isReadOnly={store.isPending}
      />
      {store.error && <Problem error={store.error} />}
      <div class="row">
        <Button
          look="primary"
          disabled={!isObject || store.isPending}
          onClick={() =>
            store.mutate(draft, {
              onSuccess: bid => {
                drop();
                onStored(bid);
              },
            })
          }
        >
          Store
        </Button>
        {!isObject && <span class="muted">A bookmark is a JSON object: it begins with {'{'}.</span>}
      </div>
    </section>
  );
}

interface RemoveBookmarkProps {
  pid: string;
  bookmark: Bookmark;
  onClose: () => void;
}

function RemoveBookmark({ pid, bookmark: { id }, onClose }: RemoveBookmarkProps) {
  const remove = useRemoveBookmark(pid);
  return (
    <ConfirmDialog
      title="Remove this bookmark?"
      action="Remove the bookmark"
      isPending={remove.isPending}
      error={remove.error}
      onConfirm={() => remove.mutate(id, { onSuccess: onClose })}
      onClose={onClose}
    >
      <p class="break">
        <code>{id}</code> goes, for everybody in the project: whoever has kept its id opens nothing
        any more.
      </p>
    </ConfirmDialog>
  );
}
