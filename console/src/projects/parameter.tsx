import { WindlassError } from '@windlass/client';
import type { TargetedSubmitEvent } from 'preact';
import { useLocation } from 'wouter-preact';
import { useDraft } from '../service/drafts.ts';
import { artifactPath, downloadName, useArtifact } from '../service/models.ts';
import { draftOf, useParameter, useStoreParameter } from '../service/parameters.ts';
import { apiPath } from '../service/place.ts';
import { canWrite } from '../service/projects.ts';
import { Button } from '../ui/button.tsx';
import { Empty } from '../ui/empty.tsx';
import { formatBytes } from '../ui/format-bytes.ts';
import { DownloadIcon } from '../ui/icons.tsx';
import { Problem } from '../ui/problem.tsx';
import { useFocus } from '../ui/use-focus.ts';
import { Wait } from '../ui/wait.tsx';
import { JsonEditor } from './json-editor.tsx';
import { readJson } from './json-text.ts';
import type { ModelPartProps } from './model-part.ts';

/** A longer text makes a textarea slow. */
const EDITED = 2 << 20;

/** A parameter of a model, or a new one. */
export function ParameterPart(props: ModelPartProps) {
  return props.name === undefined ? (
    <ParameterForm {...props} text="" isInput={true} tag={undefined} missing={null} />
  ) : (
    <KnownParameter key={props.name} {...props} name={props.name} />
  );
}

function KnownParameter(props: ModelPartProps & { name: string }) {
  const { model, name } = props;
  const artifact = useArtifact(model.id, name);
  const value = useParameter(model.id, name);
  const error = value.error ?? artifact.error;
  const isMissing = error instanceof WindlassError && error.status === 404;
  if (artifact.data === undefined || !(value.data || isMissing))
    return (
      <>
        <h1 class="ellipsis">{name}</h1>
        {error ? <Problem error={error} /> : <Wait>Reading the parameter …</Wait>}
      </>
    );
  const { text, tag } = (!isMissing && value.data) || { text: '', tag: undefined };
  const isInput = artifact.data?.input ?? false;
  return (
    <>
      <div class="page-head">
        <h1 class="ellipsis" title={name}>
          {name}
        </h1>
        {!isMissing && (
          <a
            class="button"
            href={apiPath(artifactPath(model.id, { aid: name, type: 'parameter' }))}
            download={downloadName({ aid: name, type: 'parameter' })}
          >
            <DownloadIcon />
            Download
          </a>
        )}
      </div>
      {text.length > EDITED ? (
        <div class="card">
          <Empty title="Too long to be edited here">
            <p>
              It is {formatBytes(text.length)} of JSON. Download it, and store the changed text by a
              program.
            </p>
          </Empty>
        </div>
      ) : (
        <ParameterForm
          {...props}
          text={text}
          isInput={isInput}
          tag={tag}
          missing={isMissing ? error : null}
        />
      )}
    </>
  );
}

interface ParameterFormProps extends ModelPartProps {
  text: string;
  isInput: boolean;
  tag: string | undefined;
  /** Why there is no parameter of this name any more. */
  missing: WindlassError | null;
}

function ParameterForm(props: ParameterFormProps) {
  const { project, model, name, text: stored, isInput, tag, missing } = props;
  const store = useStoreParameter(model.id);
  // A draft keeps the tag of the value that it changes, so that it does not replace unseen what others stored since.
  const { draft, change, drop } = useDraft(
    draftOf(model.id, name),
    { aid: '', text: stored, isInput, tag },
    isSameText,
  );
  const { text } = draft;
  const [, navigate] = useLocation();
  const first = useFocus<HTMLInputElement>();
  const isWriter = canWrite(project);
  const isChanged = text !== stored;
  const isStorable = readJson(text).error === undefined;
  /** Whether another value is stored than the one that the draft changes. */
  const isBehind = draft.tag !== tag && !store.isPending;
  const isConflict =
    store.error instanceof WindlassError && store.error.code === 'precondition_failed';
  const base = `/projects/${project.id}/models/${model.id}`;
  const save = (replaced: string | undefined) => {
    const aid = name ?? draft.aid.trim();
    store.mutate(
      { ...draft, aid, isNew: name === undefined, tag: replaced },
      {
        onSuccess: () => {
          drop();
          if (name === undefined)
            navigate(`${base}/parameter?name=${encodeURIComponent(aid)}`, { replace: true });
        },
      },
    );
  };
  const send = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (!isBehind) save(tag);
  };
  const takeBack = () => {
    drop();
    store.reset();
    if (missing) navigate(`${base}/content`);
  };
  if (missing && draft.tag === undefined) return <Problem error={missing} />;
  return (
    <form class="form" onSubmit={send} autocomplete="off">
      {name === undefined && (
        <>
          <h1>New parameter</h1>
          <label class="field narrow">
            <span>Name</span>
            <input
              class="input"
              name="name"
              required
              ref={first}
              readOnly={store.isPending}
              value={draft.aid}
              onInput={event => change({ ...draft, aid: event.currentTarget.value })}
            />
          </label>
        </>
      )}
      {/* What is stored is shown then, in place of what would be typed meanwhile. */}
      <JsonEditor
        label="Value"
        text={text}
        onChange={next => change({ ...draft, text: next })}
        isReadOnly={!isWriter || store.isPending}
      />
      <label class="check">
        <input
          type="checkbox"
          name="input"
          checked={draft.isInput}
          disabled={!isWriter || store.isPending}
          onChange={event => change({ ...draft, isInput: event.currentTarget.checked })}
        />
        <span>An input of the model, not one of its results</span>
      </label>
      {isBehind && (
        <Conflict
          text={missing ? undefined : stored}
          isAsked={isConflict}
          isPending={store.isPending}
          isStorable={isStorable}
          onTake={takeBack}
          onStore={() => save(tag)}
        />
      )}
      {store.error && !(isBehind && isConflict) && <Problem error={store.error} />}
      {isWriter && (
        <div class="row">
          {!isBehind && (
            <Button type="submit" look="primary" disabled={store.isPending || !isStorable}>
              Store
            </Button>
          )}
          {name !== undefined && isChanged && !isBehind && (
            <Button onClick={takeBack}>Take it back</Button>
          )}
          <span role="status" class="muted">
            {store.isPending ? 'Storing …' : isChanged && name !== undefined && 'Not stored yet.'}
          </span>
        </div>
      )}
    </form>
  );
}

interface ConflictProps {
  /** What is stored; undefined where nothing is any more. */
  text: string | undefined;
  /** Whether the conflict was met while storing. */
  isAsked: boolean;
  isPending: boolean;
  isStorable: boolean;
  onTake: () => void;
  onStore: () => void;
}

/** What somebody else has stored, or removed, beside what is typed: one of them is chosen once both were seen. */
function Conflict({ text, isAsked, isPending, isStorable, onTake, onStore }: ConflictProps) {
  const notice = useFocus<HTMLDivElement>(isAsked);
  return (
    <div class="form conflict">
      <div class="notice" data-look="error" role="alert" tabIndex={-1} ref={notice}>
        <strong>
          Somebody else {text === undefined ? 'removed' : 'stored'} this parameter since.
        </strong>
        <p>What you typed is above{text !== undefined && ', and what is stored now is below'}.</p>
        <div class="row">
          <Button disabled={isPending} onClick={onTake}>
            Take theirs
          </Button>
          <Button look="primary" disabled={isPending || !isStorable} onClick={onStore}>
            Store mine
          </Button>
        </div>
      </div>
      {text !== undefined && (
        <JsonEditor label="Stored now" text={text} onChange={() => {}} isReadOnly />
      )}
    </div>
  );
}

interface Draft {
  aid: string;
  text: string;
  isInput: boolean;
}

const isSameText = (one: Draft, other: Draft): boolean =>
  one.aid === other.aid && one.text === other.text && one.isInput === other.isInput;
