import { useEffect, useRef, useState } from 'preact/hooks';
import { mayPass } from '../service/failures.ts';
import { apiPath } from '../service/place.ts';
import { Button } from '../ui/button.tsx';
import { formatBytes } from '../ui/format-bytes.ts';
import { DownloadIcon, EndIcon, WrapIcon } from '../ui/icons.tsx';
import { formatCount } from '../ui/numbers.ts';
import { Problem } from '../ui/problem.tsx';
import { readLine, useAddress } from '../ui/use-address.ts';
import { CopyButton } from './copy-button.tsx';
import { FindBox } from './find-box.tsx';
import { GoToBox } from './go-to-box.tsx';
import { LogView } from './log-view.ts';
import { ToldGrowth } from './told-growth.tsx';
import { useFind } from './use-find.ts';
import { useLog } from './use-log.ts';

/**
 * A job's output as it comes, with its controls. The address holds the marked line, the search, and whether lines wrap.
 */
export function LogPanel({ job }: { job: string }) {
  const followed = useLog(job);
  const { log, error, subscribe } = followed;
  const [search, change] = useAddress();
  const line = readLine(search);
  const wraps = search.get('wrap') === 'on';
  const find = useFind(followed, {
    query: search.get('find') ?? '',
    setQuery: query => change({ find: query }),
  });
  const scroller = useRef<HTMLElement>(null);
  const view = useRef<LogView>();
  const [following, setFollowing] = useState(line === undefined);
  const pick = useRef((_line: number) => {});
  pick.current = picked => change({ line: String(picked + 1) });

  useEffect(() => {
    if (!scroller.current) return;
    const opened = new LogView(scroller.current, log, {
      following: line === undefined,
      onFollow: setFollowing,
      onPick: picked => pick.current(picked),
    });
    view.current = opened;
    const stop = subscribe(() => opened.refresh());
    return () => {
      stop();
      opened.destroy();
    };
  }, [log, subscribe]);
  useEffect(() => view.current?.setWraps(wraps), [wraps, log]);
  useEffect(() => view.current?.setQuery(find.query), [find.query, log]);
  useEffect(() => view.current?.setFollowing(following), [following, log]);
  // A line that has not come yet is shown when it does.
  const hasLine = line !== undefined && line < log.lineCount;
  useEffect(() => {
    view.current?.pick(line);
    if (hasLine) view.current?.showLine(line);
  }, [line, hasLine, log]);

  const show = (found: number | undefined) => {
    if (found === undefined) return;
    view.current?.pick(found);
    view.current?.showLine(found);
  };
  const goTo = (found: number) => {
    change({ line: String(found + 1) });
    show(found);
    // From here a press of Tab is the link to the line.
    scroller.current?.focus({ preventScroll: true });
  };
  const bytes = log.bytesOf('stdout') + log.bytesOf('stderr');
  return (
    <section class="card log-card" aria-label="Output">
      <div class="card-head log-head">
        <p class="row">
          <span class="log-count">
            {formatCount(log.lineCount)} {log.lineCount === 1 ? 'line' : 'lines'}
          </span>
          <span class="muted">{formatBytes(bytes)}</span>
        </p>
        <div class="row">
          <FindBox find={find} onShow={show} />
          <GoToBox log={log} line={line} onShow={goTo} />
          {!log.isWhole && (
            <Button
              size="small"
              aria-pressed={following}
              title="Stay at the end while lines come"
              onClick={() => setFollowing(!following)}
            >
              <EndIcon />
              Follow
            </Button>
          )}
          <Button
            size="small"
            aria-pressed={wraps}
            title="Break lines that are longer than the window"
            onClick={() => change({ wrap: wraps ? undefined : 'on' })}
          >
            <WrapIcon />
            Wrap
          </Button>
          <CopyButton log={log} />
          {(['stdout', 'stderr'] as const)
            .filter(stream => log.bytesOf(stream) > 0)
            .map(stream => (
              <a
                key={stream}
                class="button"
                data-size="small"
                href={apiPath(`jobs/${encodeURIComponent(job)}/output?stream=${stream}`)}
                download={`${job}-${stream}.txt`}
                aria-label={`Download ${stream}`}
                title={`Download ${stream}, ${formatBytes(log.bytesOf(stream))}`}
              >
                <DownloadIcon />
                {stream}
              </a>
            ))}
        </div>
      </div>
      <ToldGrowth log={log} />
      {error !== undefined && (
        <Problem error={error}>
          {mayPass(error) && <p>It is asked for again every few seconds.</p>}
        </Problem>
      )}
      <div class="log-frame">
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it is scrolled by keys, too. */}
        <section class="log" ref={scroller} aria-label="Lines of output" tabIndex={0} />
        {log.lineCount === 0 && (
          <p class="log-empty muted">
            {log.isWhole ? 'It printed nothing.' : 'Nothing was printed yet.'}
          </p>
        )}
      </div>
    </section>
  );
}
