import { useState } from 'preact/hooks';
import { cleanFolder } from '../service/paths.ts';
import { Button } from '../ui/button.tsx';
import { useFocus } from '../ui/use-focus.ts';

interface FolderPathProps {
  path: string;
  home: string | undefined;
  onGo: (path: string) => void;
}

/** Where one is: each folder above leads there, and another path can be typed. */
export function FolderPath({ path, home, onGo }: FolderPathProps) {
  const [isTyping, setTyping] = useState(false);
  const parts = path.split('/').filter(Boolean);
  if (isTyping)
    return (
      <PathForm
        path={path}
        onCancel={() => setTyping(false)}
        onGo={typed => {
          setTyping(false);
          onGo(cleanFolder(typed.replace(/^~(?=\/|$)/, home ?? '~')));
        }}
      />
    );
  return (
    <nav class="folder-path" aria-label="Folder">
      <ol>
        {['', ...parts].map((part, n) => {
          const to = `/${parts.slice(0, n).join('/')}`;
          return (
            <li key={to}>
              <button
                type="button"
                class="folder"
                aria-current={n === parts.length ? 'location' : undefined}
                onClick={() => onGo(to)}
              >
                {part || '/'}
              </button>
              {n > 0 && n < parts.length && <span aria-hidden="true">/</span>}
            </li>
          );
        })}
      </ol>
      {home !== undefined && home !== path && (
        <Button look="quiet" size="small" onClick={() => onGo(home)}>
          Home
        </Button>
      )}
      <Button look="quiet" size="small" onClick={() => setTyping(true)}>
        Type a path
      </Button>
    </nav>
  );
}

interface PathFormProps {
  path: string;
  onGo: (typed: string) => void;
  onCancel: () => void;
}

function PathForm({ path, onGo, onCancel }: PathFormProps) {
  const field = useFocus<HTMLInputElement>();
  return (
    <form
      class="folder-path"
      onSubmit={event => {
        event.preventDefault();
        onGo(String(new FormData(event.currentTarget).get('path')).trim());
      }}
    >
      <input
        ref={field}
        class="input mono"
        name="path"
        aria-label="Folder"
        defaultValue={path}
        spellcheck={false}
        autocapitalize="none"
        onKeyDown={event => event.key === 'Escape' && onCancel()}
      />
      <Button type="submit">Go</Button>
      <Button look="quiet" onClick={onCancel}>
        Cancel
      </Button>
    </form>
  );
}
