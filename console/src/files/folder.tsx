import { useMemo, useRef } from 'preact/hooks';
import type { Dropped } from '../service/dropped.ts';
import { lookAgain, useHome, useListing } from '../service/files.ts';
import { sendFiles } from '../service/host-transfers.ts';
import type { SessionRecord } from '../service/hosts.ts';
import { cleanFolder, join, nameOf, parentOf } from '../service/paths.ts';
import { Empty } from '../ui/empty.tsx';
import { Problem } from '../ui/problem.tsx';
import { useAddress } from '../ui/use-address.ts';
import { Wait } from '../ui/wait.tsx';
import { DropArea } from './drop-area.tsx';
import { type Entry, findEntries, findEntry, ORDERS, sortEntries } from './entries.ts';
import { FileHead } from './file-head.tsx';
import { FileList } from './file-list.tsx';
import { FilePreview } from './file-preview.tsx';
import { FolderBar } from './folder-bar.tsx';
import { FolderPath } from './folder-path.tsx';
import { HostTransferList } from './host-transfer-list.tsx';
import { RemoveFile } from './remove-file.tsx';
import { UpButtons } from './up-buttons.tsx';
import { VideoForm } from './video-form.tsx';

/** A folder on a host, and what is chosen in it. The address says all of it. */
export function Folder({ session }: { session: SessionRecord }) {
  const { sid, hostname } = session;
  const [search, change] = useAddress();
  const home = useHome(sid);
  const given = search.get('path');
  // Without a path it is the home; where that is not known, the whole.
  const known = home.data ?? (home.isPending ? undefined : '/');
  const path = given === null ? known : cleanFolder(given);
  const find = search.get('find') ?? '';
  const order = ORDERS.find(each => each === search.get('order')) ?? 'name';
  const isDown = search.get('down') === 'on';
  const { data, error, isFetching, refetch } = useListing(sid, path);
  const sorted = useMemo(() => data && sortEntries(data, order, isDown), [data, order, isDown]);
  const shown = useMemo(
    () => data && sorted && findEntries(data, sorted, find),
    [data, sorted, find],
  );
  // After a change of folder the list has the focus; on the way up, at the folder that was left.
  const left = useRef<string>();
  if (path === undefined) return <Wait>Asking where your home is …</Wait>;
  const goTo = (next: string) => {
    left.current = nameOf(path);
    change({ path: next, file: '', find: '', make: '' }, { step: true });
  };
  const chosen = search.get('file') ?? undefined;
  const pattern = search.get('make') ?? undefined;
  const entry = data && findEntry(data, chosen);
  const show = (changes: { file?: string; make?: string }) =>
    change({ path, file: '', make: '', ...changes }, { step: true });
  const onOpen = ({ name, isFolder }: Entry) =>
    isFolder ? goTo(join(path, name)) : show({ file: name });
  const send = (files: Dropped[]) =>
    sendFiles({ sid, folder: path, present: new Set(data?.names) }, files);
  const up = { path, home: home.data ?? undefined, takesFocus: left.current !== undefined };
  return (
    <>
      <FolderPath path={path} home={home.data ?? undefined} onGo={goTo} />
      <FolderBar
        listing={data}
        count={shown?.length}
        isAsked={isFetching}
        find={find}
        chosen={chosen}
        onFind={text => change({ find: text })}
        onLookAgain={() => void lookAgain(sid)}
        onMake={make => show({ make })}
        onSend={send}
      />
      <HostTransferList sid={sid} listing={data} />
      {error && (
        <Problem error={error}>
          <UpButtons {...up} onGo={goTo} onAgain={refetch} />
        </Problem>
      )}
      {!data && !error && <Wait>Asking the host for its files …</Wait>}
      {data && chosen !== undefined && !entry && (
        <p class="notice" role="status">
          There is no {chosen} in this folder.
        </p>
      )}
      {data && shown && (
        <div class="files" data-beside={pattern !== undefined || entry !== undefined}>
          <DropArea folder={path} onDrop={send}>
            <FileHead
              order={order}
              isDown={isDown}
              onOrder={(next, down) => change({ order: next, down: down ? 'on' : '' })}
            />
            {shown.length > 0 ? (
              <FileList
                key={path}
                listing={data}
                shown={shown}
                chosen={chosen}
                startAt={chosen ?? left.current}
                takesFocus={left.current !== undefined}
                onShown={() => {
                  left.current = undefined;
                }}
                view={`${order} ${isDown} ${find}`}
                onOpen={onOpen}
                onUp={() => goTo(parentOf(path))}
              />
            ) : (
              <Empty title={find === '' ? 'An empty folder' : 'No name has that in it'}>
                <p>{find === '' ? 'Drop files here to send them.' : 'Look for another part.'}</p>
                {find === '' && <UpButtons {...up} onGo={goTo} />}
              </Empty>
            )}
          </DropArea>
          {pattern !== undefined && (
            <VideoForm
              sid={sid}
              listing={data}
              pattern={pattern}
              onPattern={next => change({ make: next || '*' })}
              onClose={() => show({ file: chosen })}
            />
          )}
          {pattern === undefined && entry && !entry.isFolder && (
            <FilePreview
              key={entry.name}
              sid={sid}
              path={join(path, entry.name)}
              entry={entry}
              onClose={() => show({})}
            >
              <RemoveFile
                sid={sid}
                hostname={hostname}
                entry={entry}
                path={join(path, entry.name)}
                onRemoved={() => change({ file: '' })}
              />
            </FilePreview>
          )}
        </div>
      )}
    </>
  );
}
